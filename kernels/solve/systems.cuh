/* SPDX-License-Identifier: MIT */
/* Many small systems, each by forward substitution, in one launch. A unit is up to WIDE columns of one
   system; four threads share a column, each two rows of every eight. The unit goes down its rows in blocks
   of N. What the blocks above have found is taken out first, and each thread reads again what it wrote
   itself, so the threads of a unit meet only at the triangle's blocks in shared memory. Nothing is
   multiplied by a zero that stands for the other triangle. */
#ifndef GPB_SYSTEMS_CUH
#define GPB_SYSTEMS_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T, int N, int WIDE> struct gpb_unit {
    static constexpr int PARTS = 4, PASS = 2 * PARTS, CHUNKS = N / PASS, THREADS = WIDE * PARTS;
    static constexpr int UNITS = GPB_SYSTEMS_THREADS / THREADS;
    /* Two more rows, so that columns begin in different banks and pairs of rows stay aligned; one column
       more, for what is read beyond the last row. */
    using block = T[N + 1][N + 2];

    const T *l, *b;
    T *x;
    int64_t col, rows;
    int part, thread;                      /* of the unit */
    bool there;                            /* the thread's column is */

    __device__ __forceinline__ gpb_unit(const gpb_systems_args &g)
    {
        const int64_t units = (g.cols + WIDE - 1) / WIDE;
        const int64_t number = (int64_t)blockIdx.x * UNITS + threadIdx.x / THREADS;
        const int64_t member = number / units;
        const bool exists = member < g.batch;
        thread = threadIdx.x % THREADS;
        part = thread % PARTS;
        col = number % units * WIDE + thread / PARTS;
        rows = exists ? g.n : 0;
        there = exists && col < g.cols;
        const gpb_gemm_item *item = g.items && exists ? g.items + member : nullptr;
        const void *of_l = item ? g.right ? item->b : item->a : (const T *)g.l + member * g.stride_l;
        const void *of_b = item ? g.right ? item->a : item->b : (const T *)g.b + member * g.stride_b;
        void *of_x = item ? item->c : (T *)g.x + member * g.stride_x;
        l = (const T *)of_l + g.first_l;
        b = (const T *)of_b + g.first_b + col * g.csb;
        x = (T *)of_x + g.first_x + col * g.csx;
    }

    /* The row that a thread has in register c, counted from the block's first. */
    __device__ __forceinline__ int row(int c) const { return c / 2 * PASS + 2 * part + c % 2; }

    /* The triangle's block from that row and column on. Zeros stand for what is not read. */
    __device__ __forceinline__ void read(block &to, const gpb_systems_args &g, int64_t i0, int64_t j0) const
    {
        const bool across = g.csl == 1 || g.csl == -1;
        const T *from = l + i0 * g.rsl + j0 * g.csl;
        const int last = i0 == j0 ? !g.unit : N;
#pragma unroll
        for (int y = 0; y < N * N / THREADS; y++) {
            const int number = y * THREADS + thread;
            const int i = across ? number / N : number % N, j = across ? number % N : number / N;
            const bool reads = i0 + i < rows && j < i + last;
            to[j][i] = gpb_conjugate(reads ? gpb_element_at(from + i * g.rsl + j * g.csl) : T(), g.conj);
        }
    }

    /* Takes L(i0.., j0..) X(j0..) out of the registers. */
    __device__ __forceinline__ void take(T (&y)[2 * CHUNKS], const block &of, const gpb_systems_args &g,
                                         int64_t j0) const
    {
        const T *found = x + j0 * g.rsx;
#pragma unroll 1
        for (int first = 0; first < N; first += PASS) {
            T own[2], all[PASS];
#pragma unroll
            for (int c = 0; c < 2; c++)
                own[c] = there ? gpb_element_at(found + (first + row(c)) * g.rsx) : T();
            tell(all, own);
#pragma unroll
            for (int s = 0; s < PASS; s++)
#pragma unroll
                for (int c = 0; c < 2 * CHUNKS; c++)
                    y[c] = gpb_minus_product(y[c], of[first + s][row(c)], all[s]);
        }
    }

    /* What the four threads of the column have in their first two registers, by rows. */
    template <int COUNT> __device__ __forceinline__ void tell(T (&all)[PASS], const T (&own)[COUNT]) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int s = 0; s < PASS; s++) all[s] = gpb_shuffled(own[s % 2], lane / PARTS * PARTS + s / 2);
    }

    /* Solves with the triangle of the block on the diagonal, and writes what it finds. inverse: 1 over the
       diagonal, 0 where a division is needed. */
    __device__ __forceinline__ void solve(T (&y)[2 * CHUNKS], const block &of, const T *inverse,
                                          const gpb_systems_args &g, int64_t i0) const
    {
        T *to = x + i0 * g.rsx;
        const int n = (int)min(rows - i0, (int64_t)N);
#pragma unroll 1
        for (int first = 0; first < n; first += PASS) {
            const auto *columns = &of[first];
            T found[PASS];
            tell(found, y);
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                if (!g.unit && first + s < n) {
                    const T by = inverse[first + s];
                    found[s] = gpb_is_zero(by) ? gpb_quotient(found[s], columns[s][first + s])
                                               : gpb_times(found[s], by);
                }
#pragma unroll
                for (int r = s + 1; r < PASS; r++)
                    found[r] = gpb_minus_product(found[r], columns[s][first + r], found[s]);
            }
#pragma unroll
            for (int s = 0; s < PASS; s++)
                if (part == s / 2 && there && first + s < n)
                    gpb_element_put(to + (first + s) * g.rsx, found[s]);
#pragma unroll
            for (int c = 2; c < 2 * CHUNKS; c++) {
                if (c == CHUNKS && first + c / 2 * PASS >= N) break;       /* of no use any more */
#pragma unroll
                for (int s = 0; s < PASS; s++)
                    y[c] = gpb_minus_product(y[c], columns[s][first + row(c)], found[s]);
            }
#pragma unroll
            for (int c = 2; c < 2 * CHUNKS; c++) y[c - 2] = y[c];
        }
    }
};

template <class T, int N, int WIDE> static __device__ __forceinline__ void
gpb_systems_of(const gpb_systems_args &g)
{
    using unit = gpb_unit<T, N, WIDE>;
    __shared__ __align__(16) typename unit::block blocks[unit::UNITS];
    __shared__ T inverses[unit::UNITS][N];
    const unit u(g);
    auto &block = blocks[threadIdx.x / unit::THREADS];
    T *inverse = inverses[threadIdx.x / unit::THREADS], y[2 * unit::CHUNKS];
    const T alpha = gpb_scalar<T>::of(g.alpha);
    const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0;
#pragma unroll 1
    for (int64_t i0 = 0; i0 < g.n; i0 += N) {
#pragma unroll
        for (int c = 0; c < 2 * unit::CHUNKS; c++) {
            const int64_t i = i0 + u.row(c);
            y[c] = u.there && i < u.rows ? gpb_element_at(u.b + i * g.rsb) : T();
            if (scales) y[c] = gpb_product(alpha, y[c]);
        }
#pragma unroll 1
        for (int64_t j0 = 0; j0 < i0; j0 += N) {
            u.read(block, g, i0, j0);
            __syncthreads();
            u.take(y, block, g, j0);
            __syncthreads();
        }
        u.read(block, g, i0, i0);
        __syncthreads();
        if (!g.unit && u.thread < N) {
            const T on = block[u.thread][u.thread];
            inverse[u.thread] = gpb_inverts(on) ? gpb_quotient(gpb_from_real<T>(1), on) : T();
        }
        __syncthreads();
        u.solve(y, block, inverse, g, i0);
        __syncthreads();
    }
}

template <class T> static __device__ __forceinline__ void gpb_systems(const gpb_systems_args &g)
{
    gpb_systems_of<T, GPB_BLOCK_ORDER(sizeof(T)), GPB_SYSTEMS_COLUMNS>(g);
}
template <class T> static __device__ __forceinline__ void gpb_small_systems(const gpb_systems_args &g)
{
    gpb_systems_of<T, GPB_SMALL_SYSTEM, GPB_SMALL_SYSTEM>(g);
}

#endif
