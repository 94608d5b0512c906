/* SPDX-License-Identifier: MIT */
/* Cholesky of one block and of the rows below it. Every thread block has all of the diagonal's block,
   because to factor it anew is faster than to wait for another, and some rows below. A thread has one row in
   registers.

   A pass is for a few columns. Its part of the diagonal's block goes to shared memory, and every thread
   factors that for itself beside its own row, so that a column takes no barrier: a barrier for each took 27
   us a launch (H200, d). Then each thread takes the pass's columns out of its others. These move on by a pass
   in the registers, because an unrolled loop is slower: its instructions come from memory. */
#ifndef GPB_CHOLESKY_CUH
#define GPB_CHOLESKY_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_cholesky_body {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PASS = GPB_IS_COMPLEX<T> ? 4 : 8;
    static constexpr int ROWS = GPB_CHOLESKY_THREADS;
    static_assert(ROWS == N + GPB_CHOLESKY_ROWS(sizeof(T)) && N % PASS == 0, "what a block has");
    using columns = T[PASS + 16 / sizeof(T)];  /* of a row; rows begin in different banks */

    __align__(16) columns diagonal[PASS], factors[N];
    bool last;                   /* all others have read the diagonal's block: it may be overwritten */

    __device__ __forceinline__ void meet(const gpb_cholesky_args &g)
    {
        __syncthreads();
        if (threadIdx.x) return;
        __threadfence();
        last = atomicAdd(g.arrivals, 1) - g.arrived == gridDim.x - 1;
        __threadfence();
    }

    /* x is the element in column j of a row below the diagonal's block, or of row i of that. */
    __device__ __forceinline__ void store(const gpb_cholesky_args &g, T *a, T x, gpb_real<T> minor,
                                          gpb_real<T> inverse, int i, int j) const
    {
        if (j >= g.n || (i < N && (i < j || !last))) return;
        if (i != j) {
            gpb_element_put(a + j * g.cs, x);
            return;
        }
        /* A root whose last bit is right. */
        const gpb_real<T> root = minor * inverse;
        const gpb_real<T> better = gpb_minus_product(root, gpb_minus_product(-minor, -root, root),
                                                     inverse * gpb_real<T>(0.5));
        gpb_element_put(a + j * g.cs, gpb_from_real<T>(better));
        if (!(minor > 0)) atomicMin(g.info, g.first + j + 1);      /* if it is NaN, too */
    }

    /* The pass's columns of one row, and the roots' inverses. Of the diagonal's rows no other elements are
       used than those below the diagonal. */
    __device__ __forceinline__ void factor(T (&x)[N], gpb_real<T> (&minor)[PASS],
                                           gpb_real<T> (&inverse)[PASS]) const
    {
        T d[PASS][PASS];
#pragma unroll
        for (int r = 0; r < PASS; r++)
#pragma unroll
            for (int c = 0; c <= r; c++) d[r][c] = diagonal[r][c];
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            minor[s] = gpb_real_part(d[s][s]);
            inverse[s] = gpb_fast_inverse_root(minor[s]);
            if (!gpb_is_ordinary(minor[s])) inverse[s] = gpb_inverse_root(minor[s]);
            x[s] = gpb_scaled(x[s], inverse[s]);
#pragma unroll
            for (int c = s + 1; c < PASS; c++) {
                d[c][s] = gpb_scaled(d[c][s], inverse[s]);
                const T other = gpb_conjugate(d[c][s], true);
                x[c] = gpb_minus_product(x[c], x[s], other);
            }
#pragma unroll
            for (int c = s + 1; c < PASS; c++)
#pragma unroll
                for (int r = c; r < PASS; r++)
                    d[r][c] = gpb_minus_product(d[r][c], d[r][s], gpb_conjugate(d[c][s], true));
        }
    }

    __device__ __forceinline__ void run(const gpb_cholesky_args &g)
    {
        const int i = threadIdx.x;
        const int64_t row = i < N ? i : g.n + (int64_t)blockIdx.x * (ROWS - N) + i - N;
        const bool there = i < N ? i < g.n : row < g.n + g.below;
        T *a = (T *)g.a + row * g.rs, x[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            const bool reads = there && j < g.n && (i >= N || j <= i);
            x[j] = reads ? gpb_element_at(a + j * g.cs) : T();
        }
        meet(g);
#pragma unroll 1
        for (int first = 0; first < g.n; first += PASS) {
            gpb_real<T> minor[PASS], inverse[PASS];
            if (i >= first && i < first + PASS)
#pragma unroll
                for (int s = 0; s < PASS; s++) diagonal[i - first][s] = x[s];
            __syncthreads();
            factor(x, minor, inverse);
            if (i < N)
#pragma unroll
                for (int s = 0; s < PASS; s++) factors[i][s] = x[s];
            __syncthreads();
            if (there)
#pragma unroll
                for (int s = 0; s < PASS; s++) store(g, a, x[s], minor[s], inverse[s], i, first + s);
#pragma unroll
            for (int c = PASS; c < N; c++) {
                if (first + c / PASS * PASS >= g.n) continue;
#pragma unroll
                for (int s = 0; s < PASS; s++)
                    x[c] = gpb_minus_product(x[c], x[s], gpb_conjugate(factors[first + c][s], true));
            }
#pragma unroll
            for (int c = PASS; c < N; c++) x[c - PASS] = x[c];
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_cholesky(const gpb_cholesky_args &g)
{
    __shared__ __align__(16) char room[sizeof(gpb_cholesky_body<T>)];
    ((gpb_cholesky_body<T> *)room)->run(g);
}

#endif
