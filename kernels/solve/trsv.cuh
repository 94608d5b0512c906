/* SPDX-License-Identifier: MIT */
/* Substitution with a whole triangle for one column, in one launch. Rows are cut into blocks of N. A thread
   block takes one of them, multiplies what is left of the diagonal by the results of the blocks before it
   as these come, and solves for its own rows. One counter says how many blocks are solved, because they
   finish in their order. So what counts is the way from one block's results to the next: the last tile, the
   N rows of the diagonal, and the counter. Tiles are asked for before their results are waited for, and the
   diagonal's rows are divided by its elements before that. */
#ifndef GPB_TRSV_CUH
#define GPB_TRSV_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

/* A result of another block, from the level-2 cache: the first level may hold the line as it was. */
static __device__ __forceinline__ float gpb_result_at(const float *x) { return __ldcg(x); }
static __device__ __forceinline__ double gpb_result_at(const double *x) { return __ldcg(x); }
static __device__ __forceinline__ float2 gpb_result_at(const float2 *x)
{
    return make_float2(__ldcg((const float *)x), __ldcg((const float *)x + 1));
}
static __device__ __forceinline__ double2 gpb_result_at(const double2 *x)
{
    return make_double2(__ldcg((const double *)x), __ldcg((const double *)x + 1));
}

/* How the N x N elements of a tile are shared out, in the order of memory. DOWN: rows follow each other. A
   thread has one row, of some columns. */
template <class T, bool DOWN> struct gpb_trsv_tile {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), EACH = N * N / GPB_TRSV_THREADS;
    static constexpr int GROUPS = GPB_TRSV_THREADS / N, SUMS = 1;
    static __device__ __forceinline__ int row(int) { return threadIdx.x % N; }
    static __device__ __forceinline__ int col(int e) { return threadIdx.x / N * EACH + e; }
    static __device__ __forceinline__ int sum(int) { return 0; }
    static __device__ __forceinline__ void tell(T (&sums)[GPB_TRSV_THREADS / N][N], const T (&mine)[SUMS])
    {
        sums[threadIdx.x / N][threadIdx.x % N] = mine[0];
    }
};
/* Columns follow each other. A warp has some rows, and its lanes their columns. */
template <class T> struct gpb_trsv_tile<T, false> {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), EACH = N * N / GPB_TRSV_THREADS;
    static constexpr int GROUPS = 1, LANES = N / 32, SUMS = EACH / LANES;
    static __device__ __forceinline__ int row(int e) { return threadIdx.x / 32 * SUMS + e / LANES; }
    static __device__ __forceinline__ int col(int e) { return threadIdx.x % 32 + e % LANES * 32; }
    static __device__ __forceinline__ int sum(int e) { return e / LANES; }
    static __device__ __forceinline__ void tell(T (&sums)[GPB_TRSV_THREADS / N][N], const T (&mine)[SUMS])
    {
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            T all = mine[s];
#pragma unroll
            for (int lanes = 16; lanes; lanes /= 2)
                all = gpb_sum(all, gpb_shuffled(all, threadIdx.x % 32 ^ lanes));
            if (threadIdx.x % 32 == 0) sums[0][row(s * LANES)] = all;
        }
    }
};

template <class T> struct gpb_trsv_body {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), ROWS = N / 32;
    T l[N][N];                                       /* the block on the diagonal: [column][row] */
    T inverse[N], results[2][N], sums[GPB_TRSV_THREADS / N][N];

    /* The block on the diagonal, by the first so many threads. Zeros stand for what is not read. */
    template <int THREADS> __device__ __forceinline__ void read(const gpb_triangle_args &g)
    {
        const bool across = g.csl == 1 || g.csl == -1;
#pragma unroll 16
        for (int y = 0; y < N * N / THREADS; y++) {
            const int number = y * THREADS + (int)threadIdx.x;
            const int i = across ? number / N : number % N, j = across ? number % N : number / N;
            const bool reads = i < g.n && j < i + !g.unit;
            const T e = reads ? gpb_element_at((const T *)g.l + i * g.rsl + j * g.csl) : T();
            l[j][i] = gpb_conjugate(e, g.conj);
        }
    }

    /* Once `count` blocks are solved. */
    static __device__ __forceinline__ void await(const gpb_trsv_args &g, unsigned count)
    {
        while ((int)(gpb_load_acquire(g.arrivals) - (g.arrived + count)) < 0) {}
    }

    /* Elements of the tile in block row i and block column j. */
    template <bool DOWN>
    static __device__ __forceinline__ void ask(T (&tile)[gpb_trsv_tile<T, DOWN>::EACH],
                                               const gpb_triangle_args &g, int i, int j)
    {
        using shape = gpb_trsv_tile<T, DOWN>;
        const T *at = (const T *)g.l + (int64_t)i * N * g.rsl + (int64_t)j * N * g.csl;
#pragma unroll
        for (int e = 0; e < shape::EACH; e++)
            tile[e] = i * N + shape::row(e) < g.n
                          ? gpb_element_at(at + shape::row(e) * g.rsl + shape::col(e) * g.csl) : T();
    }

    /* sums: of what is left of the diagonal, times the results. */
    template <bool DOWN> __device__ __forceinline__ void multiply(const gpb_trsv_args &g, int i)
    {
        using shape = gpb_trsv_tile<T, DOWN>;
        T mine[shape::SUMS] = {}, tile[shape::EACH], next[shape::EACH];
        if (i) ask<DOWN>(next, g.of, i, 0);
        for (int j = 0; j < i; j++) {
#pragma unroll
            for (int e = 0; e < shape::EACH; e++) tile[e] = gpb_conjugate(next[e], g.of.conj);
            if (j + 1 < i) ask<DOWN>(next, g.of, i, j + 1);
            if (threadIdx.x < N) {
                await(g, j + 1);
                results[j % 2][threadIdx.x] =
                    gpb_result_at((const T *)g.of.b + ((int64_t)j * N + threadIdx.x) * g.of.rsb);
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < shape::EACH; e++) {
                T &sum = mine[shape::sum(e)];
                sum = gpb_plus_product(sum, tile[e], results[j % 2][shape::col(e)]);
            }
        }
        shape::tell(sums, mine);
    }

    /* Row lane + 32 r is in value[r]. SCALED: rows of the block are divided by their diagonal's elements. */
    template <bool SCALED>
    __device__ __forceinline__ void solve(T (&value)[ROWS], const gpb_triangle_args &g) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = lane + 32 * r;
#pragma unroll 8
            for (int j = 0; j < 32; j++) {
                if (!SCALED && !g.unit && lane == j) value[r] = gpb_quotient(value[r], l[row][row]);
                const T found = gpb_shuffled(value[r], j);
                if (lane > j) value[r] = gpb_minus_product(value[r], l[j + 32 * r][row], found);
#pragma unroll
                for (int s = r + 1; s < ROWS; s++)
                    value[s] = gpb_minus_product(value[s], l[j + 32 * r][lane + 32 * s], found);
            }
        }
    }

    /* Divides the block's rows by their diagonal's elements, if no element leaves the range of normal numbers
       by that: the rows' results then wait for no division. A unit triangle is so already. */
    __device__ __forceinline__ bool scale(const gpb_triangle_args &g)
    {
        constexpr int EACH = N * N / GPB_TRSV_THREADS;
        T scaled[EACH];
        bool usual = true;
        if (threadIdx.x < N) {
            const T one = gpb_from_real<T>(1), y = threadIdx.x < g.n ? l[threadIdx.x][threadIdx.x] : one;
            inverse[threadIdx.x] = gpb_quotient(one, y);
            usual = gpb_inverts(y);
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int number = e * GPB_TRSV_THREADS + threadIdx.x, i = number % N, j = number / N;
            const bool below = i > j && i < g.n;
            scaled[e] = below ? gpb_times(l[j][i], inverse[i]) : l[j][i];
            usual = usual && (!below || gpb_is_zero(l[j][i]) || gpb_inverts(scaled[e]));
        }
        usual = __syncthreads_and(usual);
        if (!usual) return false;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int number = e * GPB_TRSV_THREADS + threadIdx.x;
            l[number / N][number % N] = scaled[e];
        }
        return true;
    }

    /* The same for what the rows are to be. False, and nothing is changed: some of it would be infinite, and
       the rest of its row might take that away. */
    __device__ __forceinline__ bool divide(T (&value)[ROWS]) const
    {
        T divided[ROWS];
        bool finite = true;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            divided[r] = gpb_times(value[r], inverse[threadIdx.x + 32 * r]);
            finite = finite && gpb_is_finite(divided[r]);
        }
        if (!__all_sync(~0u, finite)) return false;
#pragma unroll
        for (int r = 0; r < ROWS; r++) value[r] = divided[r];
        return true;
    }

    /* alpha B of block row i, for the first warp. */
    static __device__ __forceinline__ void right_side(T (&value)[ROWS], const gpb_triangle_args &g, int i)
    {
        const T alpha = gpb_scalar<T>::of(g.alpha);
        const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = (int64_t)i * N + threadIdx.x % 32 + 32 * r;
            value[r] = row < g.n ? gpb_element_at((const T *)g.b + row * g.rsb) : T();
            if (scales) value[r] = gpb_product(alpha, value[r]);
        }
    }

    /* The first warp solves for block row i, whose sums are there, and tells the others. */
    template <int GROUPS>
    __device__ __forceinline__ void finish(T (&value)[ROWS], const gpb_trsv_args &g,
                                           const gpb_triangle_args &diagonal, int i, bool scaled)
    {
        const int lane = threadIdx.x % 32;
        const int64_t first = (int64_t)i * N;
        T *b = (T *)g.of.b + first * g.of.rsb;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int group = 0; group < GROUPS; group++)
                value[r] = gpb_sum(value[r], gpb_negated(sums[group][lane + 32 * r]));
        if (g.of.unit || (scaled && divide(value))) {
            solve<true>(value, g.of);
        } else {
            if (scaled) {
                read<32>(diagonal);
                __syncwarp();
            }
            solve<false>(value, g.of);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = lane + 32 * r;
            if (first + row < g.of.n) gpb_element_put(b + row * g.of.rsb, value[r]);
        }
        __syncwarp();
        if (lane == 0) gpb_store_release(g.arrivals, g.arrived + (unsigned)i + 1);
    }

    template <bool DOWN> __device__ __forceinline__ void run(const gpb_trsv_args &g)
    {
        const int blocks = (g.of.n + N - 1) / N;
        for (int i = blockIdx.x; i < blocks; i += gridDim.x) {
            gpb_triangle_args diagonal = g.of;
            diagonal.l = (const T *)g.of.l + (int64_t)i * N * (g.of.rsl + g.of.csl);
            diagonal.n = min(N, g.of.n - i * N);
            read<GPB_TRSV_THREADS>(diagonal);
            __syncthreads();
            const bool scaled = g.of.unit || scale(diagonal);
            T value[ROWS] = {};
            if (threadIdx.x < 32) right_side(value, g.of, i);
            multiply<DOWN>(g, i);
            __syncthreads();
            if (threadIdx.x < 32) finish<gpb_trsv_tile<T, DOWN>::GROUPS>(value, g, diagonal, i, scaled);
            __syncthreads();               /* before the next block overwrites shared memory */
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_trsv(const gpb_trsv_args &g)
{
    __shared__ __align__(16) char room[sizeof(gpb_trsv_body<T>)];
    gpb_trsv_body<T> &body = *(gpb_trsv_body<T> *)room;
    if (g.of.rsl == 1 || g.of.rsl == -1) body.template run<true>(g);
    else body.template run<false>(g);
}

#endif
