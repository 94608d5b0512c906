/* SPDX-License-Identifier: MIT */
/* Cholesky of one block and of the rows below it. Every thread block has all of the diagonal's block,
   because to factor it anew is faster than to wait for another, and some rows below: one for each thread, in
   shared memory.

   A pass is for a few columns. Every thread factors the pass's part of the diagonal's block for itself,
   beside its own row, so that a column takes no barrier. Then each takes the pass's columns out of its
   others.

   Loops are short rather than unrolled, because a launch finds none of its instructions in the SM's cache and
   fetches them from memory, one line after the other. Whatever it did, a kernel of straight code took 11 ns
   for each instruction, 20 to 35 us for a launch; this one takes 13 to 22 (H100, 2026-11-26). */
#ifndef GPB_CHOLESKY_CUH
#define GPB_CHOLESKY_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_cholesky_body {
    using real = gpb_real<T>;
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PASS = GPB_IS_COMPLEX<T> ? 4 : 8;
    static constexpr int ROWS = GPB_CHOLESKY_THREADS;
    static_assert(ROWS == N + GPB_CHOLESKY_ROWS(sizeof(T)) && N % PASS == 0, "what a block has");
    struct __align__(sizeof(T) < 16 ? 2 * sizeof(T) : 16) two { T x[2]; };

    T column[N][ROWS];
    two factors[PASS][N / 2];    /* the pass's columns of the diagonal's block, when they are L's */
    bool last;                   /* all others have read the diagonal's block: it may be overwritten */

    /* Elements of the row up to that column come to shared memory, where none is missed. A complex number may
       lie between multiples of its size. */
    __device__ __forceinline__ void fetch(const T *row, int64_t cs, int most)
    {
        constexpr int REAL = sizeof(real);
#pragma unroll 1
        for (int j = 0; j <= most; j++, row += cs)
#pragma unroll
            for (int part = 0; part < GPB_REALS<T>; part++)
                gpb_cp_async_if<REAL>(1, gpb_shared_address((real *)&column[j][threadIdx.x] + part),
                                      (const real *)row + part);
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
    }

    __device__ __forceinline__ void meet(const gpb_cholesky_args &g)
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            last = atomicAdd(g.arrivals, 1) - g.arrived == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
    }

    /* The pass's columns of the thread's row. minor and inverse: those of its own column, if it is a row of
       the pass; inverse is that of the root. */
    __device__ __forceinline__ void factor(T (&x)[PASS], int first, real &minor, real &inverse) const
    {
        T d[PASS][PASS];
#pragma unroll
        for (int c = 0; c < PASS; c++) {
            x[c] = column[first + c][threadIdx.x];
#pragma unroll
            for (int r = c; r < PASS; r++) d[r][c] = column[first + c][first + r];
        }
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            const real of = gpb_real_part(d[s][s]);
            real by = gpb_fast_inverse_root(of);
            if (!gpb_is_ordinary(of)) by = gpb_inverse_root(of);
            if (threadIdx.x == first + s) minor = of, inverse = by;
            x[s] = gpb_scaled(x[s], by);
#pragma unroll
            for (int c = s + 1; c < PASS; c++) {
                d[c][s] = gpb_scaled(d[c][s], by);
                x[c] = gpb_minus_product(x[c], x[s], gpb_conjugate(d[c][s], true));
            }
#pragma unroll
            for (int c = s + 1; c < PASS; c++)
#pragma unroll
                for (int r = c; r < PASS; r++)
                    d[r][c] = gpb_minus_product(d[r][c], d[r][s], gpb_conjugate(d[c][s], true));
        }
    }

    /* Takes the pass's columns out of those from `from` on, as many. */
    __device__ __forceinline__ void take(const T (&x)[PASS], int from)
    {
#pragma unroll
        for (int c = 0; c < PASS; c += 2) {
            T *own[2] = { &column[from + c][threadIdx.x], &column[from + c + 1][threadIdx.x] };
            T sum[2] = { *own[0], *own[1] };
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const two other = factors[s][(from + c) / 2];
#pragma unroll
                for (int e = 0; e < 2; e++)
                    sum[e] = gpb_minus_product(sum[e], x[s], gpb_conjugate(other.x[e], true));
            }
#pragma unroll
            for (int e = 0; e < 2; e++) *own[e] = sum[e];
        }
    }

    /* A root whose last bit is right. */
    static __device__ __forceinline__ real root(real minor, real inverse)
    {
        const real y = minor * inverse, rest = gpb_minus_product(-minor, -y, y);
        return gpb_minus_product(y, rest, inverse * real(0.5));
    }

    __device__ __forceinline__ void run(const gpb_cholesky_args &g)
    {
        const int i = threadIdx.x;
        const int64_t row = i < N ? i : g.n + (int64_t)blockIdx.x * (ROWS - N) + i - N;
        const bool there = i < N ? i < g.n : row < g.n + g.below;
        const int most = !there ? -1 : i < N ? i : g.n - 1;                /* the row's last column */
        T *to = (T *)g.a + row * g.rs;
        fetch(to, g.cs, most);
        meet(g);
        const bool stores = i >= N || last;
#pragma unroll 1
        for (int first = 0; first < g.n; first += PASS) {
            T x[PASS];
            real minor = 1, inverse = 1;
            factor(x, first, minor, inverse);
            if (i < N)
#pragma unroll
                for (int s = 0; s < PASS; s++) factors[s][i / 2].x[i % 2] = x[s];
            __syncthreads();
#pragma unroll
            for (int s = 0; s < PASS; s++, to += g.cs) {
                if (i == first + s) x[s] = gpb_from_real<T>(root(minor, inverse));
                if (stores && first + s <= most) gpb_element_put(to, x[s]);
            }
            const bool fails = most >= 0 && !(minor > 0);                  /* if it is NaN, too */
            if (stores && fails) atomicMin(g.info, g.first + i + 1);
#pragma unroll 1
            for (int from = first + PASS; from < g.n; from += PASS) take(x, from);
            __syncthreads();
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_cholesky(const gpb_cholesky_args &g)
{
    static_assert(sizeof(gpb_cholesky_body<T>) <= GPB_CHOLESKY_SHARED(sizeof(T)), "as it is launched");
    ((gpb_cholesky_body<T> *)gpb_solve_memory())->run(g);
}

#endif
