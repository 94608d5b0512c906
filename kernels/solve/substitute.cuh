/* SPDX-License-Identifier: MIT */
/* Forward substitution with one triangle. Substitution and not a product with the inverse, whose error grows
   with the condition of the triangle. In a pass each thread solves for all eight rows of its columns, so that
   threads need not talk between rows, and takes them out of its other rows. */
#ifndef GPB_SUBSTITUTE_CUH
#define GPB_SUBSTITUTE_CUH

#include "kernels/solve/triangle.cuh"

template <class T> struct gpb_substitute_body {
    using triangle = gpb_triangle<T>;
    static constexpr int PASS = triangle::PASS, ROUND = triangle::ROUND, ROUNDS = triangle::ROUNDS;
    static constexpr int COLUMNS = triangle::COLUMNS;
    typename triangle::columns l[triangle::STAGES];
    T inverse[triangle::ORDER];

    /* How rows are divided: not at all; by products with inverses, if these are as good; by divisions. */
    enum by { UNIT, INVERSES, DIVISIONS };

    /* Ones stand for the inverses of what is not there. */
    __device__ __forceinline__ by invert(const gpb_triangle_args &g)
    {
        bool usual = true;
        for (int i = threadIdx.x; i < triangle::ORDER; i += triangle::THREADS) {
            const T one = gpb_from_real<T>(1);
            const T y = i < g.n && !g.unit ? gpb_element_at((const T *)g.l + i * (g.rsl + g.csl)) : one;
            inverse[i] = gpb_quotient(one, y);
            usual = usual && gpb_inverts(y);
        }
        usual = __syncthreads_and(usual);
        return g.unit ? UNIT : usual ? INVERSES : DIVISIONS;
    }

    template <by HOW>
    __device__ __forceinline__ void solve(T (&found)[PASS][COLUMNS], const typename triangle::columns &of,
                                          const gpb_triangle_args &g, int first) const
    {
#pragma unroll
        for (int s = 0; s < PASS; s++) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                if (HOW == INVERSES) found[s][c] = gpb_times(found[s][c], inverse[first + s]);
                else if (HOW == DIVISIONS && first + s < g.n)
                    found[s][c] = gpb_quotient(found[s][c], of[s][first + s]);
#pragma unroll
            for (int r = s + 1; r < PASS; r++) {
                const T y = of[s][first + r];
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    found[r][c] = gpb_minus_product(found[r][c], y, found[s][c]);
            }
        }
    }

    static __device__ __forceinline__ void take(T (&x)[ROUNDS][COLUMNS][2],
                                                const typename triangle::columns &of,
                                                const T (&found)[PASS][COLUMNS], int round, int n)
    {
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) {
            if (round + q * ROUND >= n) break;
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const typename triangle::two y = triangle::pair(of, s, round + q * ROUND);
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        x[q][c][e] = gpb_minus_product(x[q][c][e], y.x[e], found[s][c]);
            }
        }
    }

    __device__ __forceinline__ void run(const gpb_triangle_args &g)
    {
        constexpr int PASSES = ROUND / PASS;
        T x[ROUNDS][COLUMNS][2], solved[COLUMNS][2] = {};
        for (int y = 0; y < triangle::STAGES - 1; y++) triangle::fetch(l[y], g, y * PASS);
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) triangle::read(x[q], g, q * ROUND);
        const by how = invert(g);
        int stage = 0;
#pragma unroll 1
        for (int first = 0; first < g.n; first += PASS, stage = triangle::next(stage)) {
            const int pass = first / PASS % PASSES, round = first - pass * PASS;
            const auto &columns = l[stage];
            T found[PASS][COLUMNS];
            triangle::await();
            triangle::fetch(l[triangle::next(stage, 2)], g, first + 2 * PASS);
            triangle::tell(found, x[0], pass);
            if (how == INVERSES) solve<INVERSES>(found, columns, g, first);
            else if (how == UNIT) solve<UNIT>(found, columns, g, first);
            else solve<DIVISIONS>(found, columns, g, first);
            take(x, columns, found, round, g.n);
#pragma unroll
            for (int s = 0; s < PASS; s++)
                if (triangle::lane() == (pass * PASS + s) / 2)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) solved[c][s % 2] = found[s][c];
            if (pass < PASSES - 1 && first + PASS < g.n) continue;
            triangle::write(g, round, solved);
#pragma unroll
            for (int q = 1; q < ROUNDS; q++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 2; e++) x[q - 1][c][e] = x[q][c][e];
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_substitute(const gpb_triangle_args &g)
{
    static_assert(sizeof(gpb_substitute_body<T>) == GPB_TRIANGLE_SHARED(sizeof(T)), "as it is launched");
    ((gpb_substitute_body<T> *)gpb_solve_memory())->run(g);
}

#endif
