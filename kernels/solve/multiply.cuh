/* SPDX-License-Identifier: MIT */
/* The product of one triangle with B, in B's place. The other triangle takes no part in it, because zeros
   there would make NaN of an infinite B. Passes go from the last columns to the first. Each thread adds
   what a pass multiplies to its own rows, which are written when all passes are done. */
#ifndef GPB_MULTIPLY_CUH
#define GPB_MULTIPLY_CUH

#include "kernels/solve/triangle.cuh"

template <class T> struct gpb_multiply_body {
    using triangle = gpb_triangle<T>;
    static constexpr int PASS = triangle::PASS, ROUND = triangle::ROUND, ROUNDS = triangle::ROUNDS;
    static constexpr int COLUMNS = triangle::COLUMNS;
    typename triangle::columns l[triangle::STAGES];

    /* Also where there is nothing to ask for, because what is waited for is counted. */
    __device__ __forceinline__ void fetch(int stage, const gpb_triangle_args &g, int first)
    {
        triangle::fetch(l[stage], g, first < 0 ? g.n : first);
    }

    static __device__ __forceinline__ void add(T (&sum)[ROUNDS][COLUMNS][2],
                                               const typename triangle::columns &of,
                                               const T (&of_b)[PASS][COLUMNS], const gpb_triangle_args &g,
                                               int first, int round)
    {
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) {
            if (round + q * ROUND >= g.n) break;
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const typename triangle::two y = triangle::pair(of, s, round + q * ROUND);
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q || round + 2 * triangle::lane() + e >= first + s + g.unit)
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++)
                            sum[q][c][e] = gpb_plus_product(sum[q][c][e], y.x[e], of_b[s][c]);
            }
        }
    }

    __device__ __forceinline__ void run(const gpb_triangle_args &g)
    {
        constexpr int PASSES = ROUND / PASS;
        const int last = (g.n - 1) / PASS * PASS;
        T own[COLUMNS][2], next[COLUMNS][2], sum[ROUNDS][COLUMNS][2] = {};
        for (int y = 0; y < triangle::STAGES - 1; y++) fetch(y, g, last - y * PASS);
        triangle::read(next, g, last / ROUND * ROUND);
        int stage = 0;
#pragma unroll 1
        for (int first = last; first >= 0; first -= PASS, stage = triangle::next(stage)) {
            const int pass = first / PASS % PASSES, round = first - pass * PASS;
            T of_b[PASS][COLUMNS];
            if (pass == PASSES - 1 || first == last) {   /* another round */
#pragma unroll
                for (int q = ROUNDS - 1; q > 0; q--)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                        for (int e = 0; e < 2; e++) sum[q][c][e] = sum[q - 1][c][e];
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        own[c][e] = next[c][e];
                        sum[0][c][e] = g.unit ? own[c][e] : T();
                    }
                if (round) triangle::read(next, g, round - ROUND);
            }
            triangle::await();
            fetch(triangle::next(stage, 2), g, first - 2 * PASS);
            triangle::tell(of_b, own, pass);
            add(sum, l[stage], of_b, g, first, round);
        }
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) triangle::write(g, q * ROUND, sum[q]);
    }
};

template <class T> static __device__ __forceinline__ void gpb_multiply(const gpb_triangle_args &g)
{
    static_assert(sizeof(gpb_multiply_body<T>) <= GPB_TRIANGLE_SHARED(sizeof(T)), "as it is launched");
    ((gpb_multiply_body<T> *)gpb_solve_memory())->run(g);
}

#endif
