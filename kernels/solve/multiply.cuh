/* SPDX-License-Identifier: MIT */
/* The products of triangles with B, in B's place or elsewhere, each by blocks of its own. The other
   triangle takes no part in it, because zeros there would make NaN of an infinite B. Passes go from the last
   columns to the first. What a pass multiplies is added to all rows below, which are written when all passes
   are done. */
#ifndef GPB_MULTIPLY_CUH
#define GPB_MULTIPLY_CUH

#include "kernels/solve/triangle.cuh"

/* Of floats a warp has four columns, because what it reads of the triangle would else keep shared
   memory busy for longer than the sums take. The rows of B in a pass go through shared memory as well: to
   shuffle each number takes as long as to read four. */
template <class T>
struct gpb_multiply_rows : gpb_triangle_in_rows<T, GPB_MULTIPLY_WARP(sizeof(T))> {
    using in_rows = gpb_triangle_in_rows<T, GPB_MULTIPLY_WARP(sizeof(T))>;
    using triangle = typename in_rows::triangle;
    static constexpr int PASS = triangle::PASS, ROUND = in_rows::ROUND, ROUNDS = in_rows::ROUNDS;
    static constexpr int COLUMNS = in_rows::COLUMNS;
    struct __align__(16) row { T x[COLUMNS]; };
    typename triangle::columns l[triangle::STAGES];
    row told[triangle::THREADS / 32][PASS];

    /* The rows of a pass, of which four threads have two each, to all threads of the warp. */
    static __device__ __forceinline__ void tell(row (&all)[PASS], const T (&x)[COLUMNS][2], int pass)
    {
        constexpr int HAVE = PASS / 2;
        __syncwarp();
        if (triangle::lane() / HAVE == pass)
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) all[2 * (triangle::lane() % HAVE) + e].x[c] = x[c][e];
        __syncwarp();
    }

    static __device__ __forceinline__ void add(T (&sum)[ROUNDS][COLUMNS][2],
                                               const typename triangle::columns &of,
                                               const row (&of_b)[PASS], const gpb_triangle_args &g,
                                               int first, int round)
    {
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) {
            if (round + q * ROUND >= g.n) break;
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const typename in_rows::two y = in_rows::pair(of, s, round + q * ROUND);
                const row b = of_b[s];
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q || round + 2 * triangle::lane() + e >= first + s + g.unit)
#pragma unroll
                        for (int c = 0; c < COLUMNS; c++)
                            sum[q][c][e] = gpb_plus_product(sum[q][c][e], y.x[e], b.x[c]);
            }
        }
    }

    /* The b of `was` is B as it was. */
    __device__ __forceinline__ void run(const gpb_triangle_args &g, const gpb_triangle_args &was)
    {
        constexpr int PASSES = ROUND / PASS;
        const int last = (g.n - 1) / PASS * PASS;
        row (&of_b)[PASS] = told[threadIdx.x / 32];
        T own[COLUMNS][2], next[COLUMNS][2], sum[ROUNDS][COLUMNS][2] = {};
#pragma unroll 1
        for (int y = 0; y < triangle::STAGES - 1; y++) triangle::fetch_back(l[y], g, last - y * PASS);
        in_rows::read(next, was, last / ROUND * ROUND);
        int stage = 0;
#pragma unroll 1
        for (int first = last; first >= 0; first -= PASS, stage = triangle::next(stage)) {
            const int pass = first / PASS % PASSES, round = first - pass * PASS;
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
                if (round) in_rows::read(next, was, round - ROUND);
            }
            triangle::await();
            triangle::fetch_back(l[triangle::next(stage, 2)], g, first - 2 * PASS);
            tell(of_b, own, pass);
            add(sum, l[stage], of_b, g, first, round);
        }
#pragma unroll
        for (int q = 0; q < ROUNDS; q++) in_rows::write(g, q * ROUND, sum[q]);
    }
};

template <class T> struct gpb_multiply_tiles : gpb_triangle_in_tiles<T> {
    using in_tiles = gpb_triangle_in_tiles<T>;
    using triangle = typename in_tiles::triangle;
    using tile = gpb_tile<T>;
    static constexpr int PASS = triangle::PASS, HIGH = in_tiles::HIGH, TILES = in_tiles::TILES;
    static constexpr int ROWS = in_tiles::ROWS;
    typename in_tiles::columns l[2];
    typename in_tiles::rows told[triangle::THREADS / 32];

    /* B's rows t and t+4 of the pass from `first` on, if there are such; as they are, because what is done
       with them here would wait for them. */
    static __device__ __forceinline__ void read(T (&to)[2], const T *from, const gpb_triangle_args &g,
                                                int first)
    {
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (first >= 0 && first + 4 * h + gpb_lane_t() < g.n)
                to[h] = gpb_element_at(from + 4 * h * g.rsb);
    }

    /* The sums of the pass's own rows, the half `half` of the tile, which have no other before them. `of_b`
       has eight rows of the warp's columns. */
    static __device__ __forceinline__ void begin(double (&x)[4], const typename triangle::column *of,
                                                 const typename in_tiles::rows &of_b,
                                                 const gpb_triangle_args &g, int first, int half)
    {
        const int row = gpb_lane_g() * ROWS - half * PASS, col = 2 * gpb_lane_t();
        if (row < 0 || row >= PASS) return;
        T sum[ROWS][2];
#pragma unroll
        for (int e = 0; e < ROWS; e++)
#pragma unroll
            for (int s = 0; s < 2; s++) sum[e][s] = g.unit ? of_b[col + s][row + e] : T();
#pragma unroll
        for (int k = 0; k < PASS; k++)
#pragma unroll
            for (int e = 0; e < ROWS; e++) {
                const T y = of[k][first + row + e];
                if (row + e >= k + g.unit)
#pragma unroll
                    for (int s = 0; s < 2; s++) sum[e][s] = gpb_plus_product(sum[e][s], y, of_b[col + s][k]);
            }
#pragma unroll
        for (int e = 0; e < ROWS; e++)
#pragma unroll
            for (int s = 0; s < 2; s++) tile::set(x, e, s, sum[e][s]);
    }

    /* The b of `was` is B as it was. */
    __device__ __forceinline__ void run(const gpb_triangle_args &g, const gpb_triangle_args &was)
    {
        const int last = (g.n - 1) / HIGH * HIGH;
        typename in_tiles::rows &shown = told[threadIdx.x / 32];
        double x[in_tiles::SUMS][4] = {};
        const int64_t col = min(triangle::col(gpb_lane_g()), g.cols - 1);
        int first = (g.n - 1) / PASS * PASS;
        const T *from = (const T *)was.b + (first + gpb_lane_t()) * was.rsb + col * was.csb;
        T own[2], next[2] = {};
        triangle::fetch(l[last / HIGH % 2], g, last);
        read(next, from, was, first);
#pragma unroll 1
        for (int round = last; round >= 0; round -= HIGH) {
            const auto &of = l[round / HIGH % 2];
            triangle::template await<0>();
            triangle::fetch_back(l[(round / HIGH + 1) % 2], g, round - HIGH);
#pragma unroll 1
            for (; first >= round; first -= PASS) {
                const int half = (first - round) / PASS;
                __syncwarp();
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    own[h] = gpb_conjugate(triangle::scaled(next[h], g), g.conj);
                    shown[gpb_lane_g()][4 * h + gpb_lane_t()] = own[h];
                }
                __syncwarp();
                from -= PASS * was.rsb;
                read(next, from, was, first - PASS);
                if (half) {
                    in_tiles::template add<0>(x, of + half * PASS, own, round, g.n);
                    begin(x[0], of + half * PASS, shown, g, first, half);
                } else {
                    in_tiles::template add<1>(x, of, own, round, g.n);
                    begin(x[1], of, shown, g, first, half);
                }
            }
        }
        in_tiles::write(x + 1, g);
    }
};

template <class T> static __device__ __forceinline__ void gpb_multiply(const gpb_multiply_args &g)
{
    const int z = blockIdx.z;
    const int64_t at = z ? g.first + (int64_t)(z - 1) * g.of.n : 0;
    gpb_triangle_args of = g.of;
    of.l = (const T *)of.l + at * (of.rsl + of.csl);
    of.b = (T *)of.b + at * of.rsb;
    of.n = (int)min((int64_t)(z ? of.n : g.first), g.order - at);
    gpb_triangle_args was = of;
    was.b = (T *)g.from + at * g.rsf;
    was.rsb = g.rsf;
    was.csb = g.csf;
    if constexpr (GPB_TRIANGLE_TILED(sizeof(gpb_real<T>))) gpb_triangle_run<gpb_multiply_tiles<T>>(of, was);
    else gpb_triangle_run<gpb_multiply_rows<T>>(of, was);
}

#endif
