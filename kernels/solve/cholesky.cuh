/* SPDX-License-Identifier: MIT */
/* Cholesky of one block and of the rows below it. Every thread block has all of the diagonal's block,
   because to factor it anew is faster than to wait for another, and some rows below. Four threads hold two
   rows in registers, of each two columns of every eight: two, because they share what comes from shared
   memory. A column takes one barrier: before it, its elements are written to shared memory as they are, not
   yet divided by the root; so all threads find what their rows lose by themselves. The next columns are
   brought up to date first, and the others while the next one's divisor is computed. The roots are not
   waited for: eight columns are divided by theirs and stored when all eight are done. The columns are a
   loop whose registers move on every eight columns, because an unrolled loop is slower: its instructions
   come from memory (26 us a launch instead of 19 to 24: H200). */
#ifndef GPB_CHOLESKY_CUH
#define GPB_CHOLESKY_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_cholesky_body {
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PARTS = 4, PASS = 2 * PARTS, CHUNKS = N / PASS;
    static constexpr int EACH = 2, SLOTS = GPB_CHOLESKY_THREADS / PARTS, ROWS = EACH * SLOTS;
    /* Beyond N more is read, and of no use. */
    static_assert(ROWS == N + GPB_CHOLESKY_ROWS(sizeof(T)) && ROWS >= 2 * N, "what a block has");

    T column[4][ROWS];
    gpb_real<T> minors[2][PASS];
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
            gpb_element_put(a + j * g.cs, gpb_scaled(x, inverse));
            return;
        }
        /* A root whose last bit is right. */
        const gpb_real<T> root = minor * inverse;
        const gpb_real<T> better = gpb_minus_product(root, gpb_minus_product(-minor, -root, root),
                                                     inverse * gpb_real<T>(0.5));
        gpb_element_put(a + j * g.cs, gpb_from_real<T>(better));
        if (!(minor > 0)) atomicMin(g.info, g.first + j + 1);      /* if it is NaN, too */
    }

    __device__ __forceinline__ void run(const gpb_cholesky_args &g)
    {
        const int part = threadIdx.x % PARTS, slot = threadIdx.x / PARTS;
        bool there[EACH];
        T *a[EACH], x[EACH][2 * CHUNKS];
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int i = slot + r * SLOTS;
            const int64_t row = i < N ? i : g.n + (int64_t)blockIdx.x * (ROWS - N) + i - N;
            there[r] = i < N ? i < g.n : row < g.n + g.below;
            a[r] = (T *)g.a + row * g.rs;
#pragma unroll
            for (int c = 0; c < 2 * CHUNKS; c++) {
                const int j = c / 2 * PASS + 2 * part + c % 2;
                const bool reads = there[r] && j < g.n && (i >= N || j <= i);
                x[r][c] = reads ? gpb_element_at(a[r] + j * g.cs) : T();
            }
        }
        meet(g);
        show(x, part, slot, 0, 0);
#pragma unroll 1
        for (int first = 0; first < g.n; first += PASS) {
            T factor[EACH];
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const int j = first + s;
                const T *at = column[s % 4];
                if (j >= g.n) break;
                __syncthreads();
                const gpb_real<T> minor = gpb_real_part(at[j]), fast = gpb_fast_inverse(minor);
                if (s) take<1, CHUNKS>(x, factor, column[(s - 1) % 4] + first + 2 * part);
                const bool divides = !gpb_is_ordinary(minor);    /* 1 / minor may be infinite */
#pragma unroll
                for (int r = 0; r < EACH; r++) {
                    const T x = at[slot + r * SLOTS];
                    factor[r] = divides ? gpb_quotient(x, gpb_from_real<T>(minor)) : gpb_scaled(x, fast);
                }
                take<0, 1>(x, factor, at + first + 2 * part, s - 2 * part);
                if (s < PASS - 1 && j + 1 < g.n) show(x, part, slot, s + 1, first);
            }
            take<1, CHUNKS>(x, factor, column[(PASS - 1) % 4] + first + 2 * part);
            const gpb_real<T> *minor = &minors[first / PASS % 2][2 * part];
            gpb_real<T> inverse[2] = { gpb_fast_inverse_root(minor[0]), gpb_fast_inverse_root(minor[1]) };
            if (!gpb_is_ordinary(minor[0])) inverse[0] = gpb_inverse_root(minor[0]);
            if (!gpb_is_ordinary(minor[1])) inverse[1] = gpb_inverse_root(minor[1]);
#pragma unroll
            for (int r = 0; r < EACH; r++)
#pragma unroll
                for (int c = 0; c < 2; c++)
                    if (there[r])
                        store(g, a[r], x[r][c], minor[c], inverse[c], slot + r * SLOTS, first + 2 * part + c);
#pragma unroll
            for (int r = 0; r < EACH; r++)
#pragma unroll
                for (int c = 2; c < 2 * CHUNKS; c++) x[r][c - 2] = x[r][c];
            /* Behind the last column others may still read the first of their pass. */
            if (first + PASS < g.n) show(x, part, slot, 0, first + PASS);
        }
    }

    /* Column first + s, to all threads. */
    __device__ __forceinline__ void show(const T (&x)[EACH][2 * CHUNKS], int part, int slot, int s, int first)
    {
        if (part != s / 2) return;
        if (slot == first + s) minors[first / PASS % 2][s] = gpb_real_part(x[0][s % 2]);
#pragma unroll
        for (int r = 0; r < EACH; r++) column[s % 4][slot + r * SLOTS] = x[r][s % 2];
    }

    /* What a column takes from those of some chunks; of the first chunk, from those after `done`. */
    template <int FIRST, int LAST>
    static __device__ __forceinline__ void take(T (&x)[EACH][2 * CHUNKS], const T (&factor)[EACH],
                                                const T *others, int done = 0)
    {
#pragma unroll
        for (int c = 2 * FIRST; c < 2 * LAST; c++) {
            const T other = gpb_conjugate(others[c / 2 * PASS + c % 2], true);
#pragma unroll
            for (int r = 0; r < EACH; r++)
                if (FIRST > 0 || c > done) x[r][c] = gpb_minus_product(x[r][c], factor[r], other);
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_cholesky(const gpb_cholesky_args &g)
{
    __shared__ __align__(16) char room[sizeof(gpb_cholesky_body<T>)];
    ((gpb_cholesky_body<T> *)room)->run(g);
}

#endif
