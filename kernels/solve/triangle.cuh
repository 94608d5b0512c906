/* SPDX-License-Identifier: MIT */
/* What the kernels share that take one triangular block to the columns of B: the block in shared memory, and
   four threads that hold a column of B in registers, each two rows of every eight. A pass of their loops is
   for eight rows; then the registers move on, because an unrolled loop is slower: its instructions come from
   memory (18 us a launch instead of 11: H200). */
#ifndef GPB_TRIANGLE_CUH
#define GPB_TRIANGLE_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_triangle {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PARTS = 4, PASS = 2 * PARTS, CHUNKS = N / PASS;
    static_assert(GPB_TRIANGLE_COLUMNS * PARTS == GPB_TRIANGLE_THREADS, "four threads a column");
    using block = T[N + 1][N];                       /* [column][row], and room behind the last */

    static __device__ __forceinline__ int part() { return threadIdx.x % PARTS; }
    static __device__ __forceinline__ int64_t col()
    {
        return (int64_t)blockIdx.x * GPB_TRIANGLE_COLUMNS + threadIdx.x / PARTS;
    }
    /* The row that a thread has in register c of its column before the first pass. */
    static __device__ __forceinline__ int row(int c) { return c / 2 * PASS + 2 * part() + c % 2; }

    /* Zeros stand for what is not read. */
    static __device__ __forceinline__ void read(block &l, const gpb_triangle_args &g)
    {
        const bool across = g.csl == 1 || g.csl == -1;
#pragma unroll
        for (int y = 0; y < N * N / GPB_TRIANGLE_THREADS; y++) {
            const int number = y * GPB_TRIANGLE_THREADS + (int)threadIdx.x;
            const int i = across ? number / N : number % N, j = across ? number % N : number / N;
            const bool read = i < g.n && j < i + !g.unit;
            const T e = read ? gpb_element_at((const T *)g.l + i * g.rsl + j * g.csl) : T();
            l[j][i] = gpb_conjugate(e, g.conj);
        }
    }

    /* alpha B */
    static __device__ __forceinline__ void read(T (&x)[2 * CHUNKS], const gpb_triangle_args &g)
    {
        const T *b = (const T *)g.b + col() * g.csb, alpha = gpb_scalar<T>::of(g.alpha);
        const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0, there = col() < g.cols;
#pragma unroll
        for (int c = 0; c < 2 * CHUNKS; c++) {
            x[c] = there && row(c) < g.n ? gpb_element_at(b + row(c) * g.rsb) : T();
            if (scales) x[c] = gpb_product(alpha, x[c]);
        }
    }

    /* What the four threads of the column have in their first two registers, by rows. */
    static __device__ __forceinline__ void tell(T (&all)[PASS], const T (&x)[2 * CHUNKS])
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int s = 0; s < PASS; s++) all[s] = gpb_shuffled(x[s % 2], lane / PARTS * PARTS + s / 2);
    }

    static __device__ __forceinline__ void move_on(T (&x)[2 * CHUNKS])
    {
#pragma unroll
        for (int c = 2; c < 2 * CHUNKS; c++) x[c - 2] = x[c];
    }
};

#endif
