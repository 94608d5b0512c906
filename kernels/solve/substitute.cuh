/* SPDX-License-Identifier: MIT */
/* Forward substitution with one triangle. Substitution and not a product with the inverse, whose error grows
   with the condition of the triangle. In a pass each thread solves for all eight rows of its columns, so that
   threads need not talk between rows; then the warp takes them out of its other rows. */
#ifndef GPB_SUBSTITUTE_CUH
#define GPB_SUBSTITUTE_CUH

#include "kernels/solve/triangle.cuh"

/* The diagonal, and the solve for the rows of a pass. */
template <class T> struct gpb_division {
    using triangle = gpb_triangle<T, 1>;               /* the columns of a warp do not matter */
    static constexpr int PASS = triangle::PASS;
    T inverse[triangle::ORDER];

    /* How rows are divided: not at all; by products with inverses, if these are as good; by divisions. */
    enum by { UNIT, INVERSES, DIVISIONS };

    /* Ones stand for the inverses of what is not there. */
    __device__ __forceinline__ by invert(const gpb_triangle_args &g)
    {
        bool usual = true;
#pragma unroll 1
        for (int i = threadIdx.x; i < triangle::ORDER; i += triangle::THREADS) {
            const T one = gpb_from_real<T>(1);
            const T y = i < g.n && !g.unit ? gpb_element_at((const T *)g.l + i * (g.rsl + g.csl)) : one;
            inverse[i] = gpb_quotient(one, y);
            usual = usual && gpb_inverts(y);
        }
        usual = __syncthreads_and(usual);
        return g.unit ? UNIT : usual ? INVERSES : DIVISIONS;
    }

    template <by HOW, int COLUMNS>
    __device__ __forceinline__ void solve(T (&found)[PASS][COLUMNS], const typename triangle::column *of,
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
    template <int COLUMNS>
    __device__ __forceinline__ void solve(by how, T (&found)[PASS][COLUMNS],
                                          const typename triangle::column *of, const gpb_triangle_args &g,
                                          int first) const
    {
        if (how == INVERSES) solve<INVERSES>(found, of, g, first);
        else if (how == UNIT) solve<UNIT>(found, of, g, first);
        else solve<DIVISIONS>(found, of, g, first);
    }
};

template <class T, int WIDE> struct gpb_substitute_rows : gpb_triangle_in_rows<T, WIDE> {
    using in_rows = gpb_triangle_in_rows<T, WIDE>;
    using triangle = typename in_rows::triangle;
    static constexpr int PASS = triangle::PASS, ROUND = in_rows::ROUND, ROUNDS = in_rows::ROUNDS;
    static constexpr int COLUMNS = in_rows::COLUMNS;
    typename triangle::columns l[triangle::STAGES];
    gpb_division<T> division;

    static __device__ __forceinline__ void take(T (&x)[ROUNDS][COLUMNS][2],
                                                const typename triangle::columns &of,
                                                const T (&found)[PASS][COLUMNS], int round, int n)
    {
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) {
            if (round + q * ROUND >= n) break;
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const typename in_rows::two y = in_rows::pair(of, s, round + q * ROUND);
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
#pragma unroll 1
        for (int y = 0; y < triangle::STAGES - 1; y++) triangle::fetch(l[y], g, y * PASS);
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) in_rows::read(x[q], g, q * ROUND);
        const auto how = division.invert(g);
        int stage = 0;
#pragma unroll 1
        for (int first = 0; first < g.n; first += PASS, stage = triangle::next(stage)) {
            const int pass = first / PASS % PASSES, round = first - pass * PASS;
            T found[PASS][COLUMNS];
            triangle::await();
            triangle::fetch(l[triangle::next(stage, 2)], g, first + 2 * PASS);
            in_rows::tell(found, x[0], pass);
            division.solve(how, found, l[stage], g, first);
            take(x, l[stage], found, round, g.n);
#pragma unroll
            for (int s = 0; s < PASS; s++)
                if (triangle::lane() == (pass * PASS + s) / 2)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) solved[c][s % 2] = found[s][c];
            if (pass < PASSES - 1 && first + PASS < g.n) continue;
            in_rows::write(g, round, solved);
#pragma unroll
            for (int q = 1; q < ROUNDS; q++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 2; e++) x[q - 1][c][e] = x[q][c][e];
        }
    }
};

template <class T> struct gpb_substitute_tiles : gpb_triangle_in_tiles<T> {
    using in_tiles = gpb_triangle_in_tiles<T>;
    using triangle = typename in_tiles::triangle;
    using tile = gpb_tile<T>;
    static constexpr int PASS = triangle::PASS, HIGH = in_tiles::HIGH, TILES = in_tiles::TILES;
    static constexpr int ROWS = in_tiles::ROWS;
    typename in_tiles::columns l[2];
    gpb_division<T> division;
    typename in_tiles::rows told[triangle::THREADS / 32];

    /* The pass's rows of column g to each of its lanes. They are the half `half` of the tile. */
    static __device__ __forceinline__ void tell(T (&all)[PASS][1], typename in_tiles::rows &through,
                                                const double (&x)[4], int half)
    {
        const int g = gpb_lane_g(), t = gpb_lane_t(), row = g * ROWS - half * PASS;
        __syncwarp();
        if (row >= 0 && row < PASS)
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int e = 0; e < ROWS; e++) through[2 * t + s][row + e] = tile::get(x, e, s);
        __syncwarp();
#pragma unroll
        for (int s = 0; s < PASS; s++) all[s][0] = through[g][s];
    }

    /* Row first + t. */
    static __device__ __forceinline__ T mine(const T (&all)[PASS][1], int first)
    {
        const int t = gpb_lane_t();
        const T low = t & 1 ? all[first + 1][0] : all[first][0];
        const T high = t & 1 ? all[first + 3][0] : all[first + 2][0];
        return t & 2 ? high : low;
    }

    __device__ __forceinline__ void run(const gpb_triangle_args &g)
    {
        const int64_t col = triangle::col(gpb_lane_g());
        T *to = (T *)g.b + gpb_lane_t() * g.rsb + col * g.csb;
        double x[in_tiles::SUMS][4];
        triangle::fetch(l[0], g, 0);
        in_tiles::read(x, g);
        const auto how = division.invert(g);
#pragma unroll 1
        for (int round = 0; round < g.n; round += HIGH) {
            const auto &of = l[round / HIGH % 2];
            triangle::template await<0>();
            triangle::fetch(l[(round / HIGH + 1) % 2], g, round + HIGH);
#pragma unroll
            for (int half = 0; half < ROWS; half++) {
                if (round + half * PASS >= g.n) break;
                const int first = round + half * PASS;
                T found[PASS][1], own[2], minus[2];
                tell(found, told[threadIdx.x / 32], x[0], half);
                division.solve(how, found, of + half * PASS, g, first);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    own[h] = mine(found, 4 * h);
                    minus[h] = gpb_negated(own[h]);
                    if (col < g.cols && first + 4 * h + gpb_lane_t() < g.n)
                        gpb_element_put(to, gpb_conjugate(own[h], g.conj));
                    to += 4 * g.rsb;
                }
                if (half < ROWS - 1) in_tiles::template add<0>(x, of + half * PASS, minus, round, g.n);
                else in_tiles::template add<-1>(x, of + half * PASS, minus, round, g.n);
            }
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_substitute(const gpb_triangle_args &g)
{
    if constexpr (GPB_TRIANGLE_TILED(sizeof(gpb_real<T>))) gpb_triangle_run<gpb_substitute_tiles<T>>(g);
    else if (GPB_TRIANGLE_WARP(g.cols) == 2) gpb_triangle_run<gpb_substitute_rows<T, 2>>(g);
    else gpb_triangle_run<gpb_substitute_rows<T, 4>>(g);
}

#endif
