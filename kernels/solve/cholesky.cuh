/* SPDX-License-Identifier: MIT */
/* Cholesky of one block. Four threads hold a row in registers, each two columns of every eight. A column
   takes one barrier: before it, its elements are written to shared memory as they are, not yet divided by
   the root; so all threads find the root, and what their rows lose, by themselves. The columns are a loop
   whose registers move on every eight columns, as in substitute.cuh. */
#ifndef GPB_CHOLESKY_CUH
#define GPB_CHOLESKY_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_cholesky(const gpb_cholesky_args &g)
{
    constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PARTS = 4, PASS = 2 * PARTS, CHUNKS = N / PASS;
    static_assert(GPB_CHOLESKY_THREADS >= N * PARTS, "four threads a row");
    __shared__ __align__(16) T column[2][2 * N];     /* beyond the last row: read, and of no use */
    const int part = threadIdx.x % PARTS, i = threadIdx.x / PARTS;
    T *a = (T *)g.a + i * g.rs, x[2 * CHUNKS];
#pragma unroll
    for (int c = 0; c < 2 * CHUNKS; c++) {
        const int j = c / 2 * PASS + 2 * part + c % 2;
        x[c] = i < g.n && j <= i ? gpb_element_at(a + j * g.cs) : T();
    }
    if (i < N) column[0][N + i] = column[1][N + i] = T();
#pragma unroll 1
    for (int first = 0; first < g.n; first += PASS) {
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            const int j = first + s;
            T *out = column[s % 2];
            if (j >= g.n) break;
            if (part == s / 2 && i < N) out[i] = x[s % 2];
            __syncthreads();
            const gpb_real<T> minor = gpb_real_part(out[j]), fast = gpb_fast_inverse(minor);
            const T mine = i < N ? out[i] : T();
            if (part == s / 2 && i >= j && i < g.n) {
                /* Of the diagonal a root whose last bit is right. */
                const gpb_real<T> inverse = gpb_inverse_root(minor);
                const gpb_real<T> root = minor * inverse;
                const gpb_real<T> better = gpb_minus_product(root, gpb_minus_product(-minor, -root, root),
                                                             inverse * gpb_real<T>(0.5));
                gpb_element_put(a + j * g.cs, i == j ? gpb_from_real<T>(better) : gpb_scaled(mine, inverse));
                /* Not if it is NaN either. */
                if (i == j && !(minor > 0)) atomicMin(g.info, g.first + j + 1);
            }
            const gpb_real<T> divisor = gpb_is_usual(fast) ? fast : gpb_quotient(gpb_real<T>(1), minor);
            const T factor = gpb_scaled(mine, divisor);
            const T *others = out + first + 2 * part;
#pragma unroll
            for (int c = 0; c < 2 * CHUNKS; c++)
                if (c > 1 || 2 * part + c > s)
                    x[c] = gpb_minus_product(x[c], factor, gpb_conjugate(others[c / 2 * PASS + c % 2], true));
        }
#pragma unroll
        for (int c = 2; c < 2 * CHUNKS; c++) x[c - 2] = x[c];
    }
}

#endif
