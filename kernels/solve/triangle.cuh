/* SPDX-License-Identifier: MIT */
/* What the kernels share that take one triangle to the columns of B. A warp holds two columns of B in
   registers, each thread two rows of every 64, a round. A pass is for eight columns of the triangle. They
   come to shared memory two passes ahead, and the threads tell each other the eight rows of B that these
   are multiplied by. After a round the registers move on by one, because an unrolled loop is slower: its
   instructions come from memory (18 us a launch instead of 11 for a block of 64: H200). A conjugated
   triangle is the plain one for the conjugated B. With four columns a warp an H100 took 41 us for 256 x
   1024 and 57 for 256 x 4096, with two 31 and 67. */
#ifndef GPB_TRIANGLE_CUH
#define GPB_TRIANGLE_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_triangle {
    static constexpr int ORDER = GPB_TRIANGLE_ORDER(sizeof(T)), PASS = 8;
    static constexpr int ROUND = 2 * 32, ROUNDS = ORDER / ROUND, THREADS = GPB_TRIANGLE_THREADS;
    static constexpr int COLUMNS = GPB_TRIANGLE_COLUMNS * 32 / THREADS;
    /* Rows follow each other. Two more, so that columns begin in different banks and pairs stay aligned. */
    using columns = T[PASS][ORDER + 2];
    static constexpr int STAGES = 3;
    struct __align__(sizeof(T) < 16 ? 2 * sizeof(T) : 16) two { T x[2]; };

    /* The columns of the pass that is next are there, and those before them may be overwritten. */
    static __device__ __forceinline__ void await()
    {
        gpb_cp_async_wait<STAGES - 2>();
        __syncthreads();
    }
    static __device__ __forceinline__ int next(int stage, int by = 1) { return (stage + by) % STAGES; }

    static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
    static __device__ __forceinline__ int64_t col(int c)
    {
        return (int64_t)blockIdx.x * GPB_TRIANGLE_COLUMNS + threadIdx.x / 32 * COLUMNS + c;
    }

    /* Asks for the triangle's columns from `first` on, if there are any, and for no element beside it. */
    static __device__ __forceinline__ void fetch(columns &to, const gpb_triangle_args &g, int first)
    {
        /* Threads follow each other in memory's order. */
        const bool across = g.csl == 1 || g.csl == -1;
        const int thread = threadIdx.x, ends = min(g.n, first + PASS) - first;
        if (across) {
            const int s = thread % PASS;
            int i = first + thread / PASS;
            const T *from = (const T *)g.l + i * g.rsl + (first + s) * g.csl;
            for (; i < g.n; i += THREADS / PASS, from += THREADS / PASS * g.rsl)
                gpb_cp_async_if<sizeof(T)>(s < min(i + 1 - g.unit - first, ends),
                                           gpb_shared_address(&to[s][i]), from);
        } else {
            int i = first + thread;
            const T *row = (const T *)g.l + i * g.rsl + first * g.csl;
            for (; i < g.n; i += THREADS, row += THREADS * g.rsl) {
                const T *from = row;
#pragma unroll
                for (int s = 0; s < PASS; s++, from += g.csl)
                    gpb_cp_async_if<sizeof(T)>(s < min(i + 1 - g.unit - first, ends),
                                               gpb_shared_address(&to[s][i]), from);
            }
        }
        gpb_cp_async_commit();
    }

    /* alpha B of the round that begins with that row, as the plain triangle takes it. */
    static __device__ __forceinline__ void read(T (&x)[COLUMNS][2], const gpb_triangle_args &g, int round)
    {
        const T alpha = gpb_scalar<T>::of(g.alpha);
        const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int i = round + 2 * lane() + e;
                const bool reads = col(c) < g.cols && i < g.n;
                T y = reads ? gpb_element_at((const T *)g.b + i * g.rsb + col(c) * g.csb) : T();
                if (scales) y = gpb_product(alpha, y);
                x[c][e] = gpb_conjugate(y, g.conj);
            }
    }
    static __device__ __forceinline__ void write(const gpb_triangle_args &g, int round,
                                                 const T (&x)[COLUMNS][2])
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int i = round + 2 * lane() + e;
                if (col(c) < g.cols && i < g.n)
                    gpb_element_put((T *)g.b + i * g.rsb + col(c) * g.csb, gpb_conjugate(x[c][e], g.conj));
            }
    }

    /* The rows of one pass of the round x, to all threads of the warp. */
    static __device__ __forceinline__ void tell(T (&all)[PASS][COLUMNS], const T (&x)[COLUMNS][2], int pass)
    {
#pragma unroll
        for (int s = 0; s < PASS; s++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                all[s][c] = gpb_shuffled(x[c][s % 2], (pass * PASS + s) / 2);
    }

    /* The pair of rows that this thread has in a round. */
    static __device__ __forceinline__ two pair(const columns &l, int s, int round)
    {
        return *(const two *)&l[s][round + 2 * lane()];
    }
};

#endif
