/* SPDX-License-Identifier: MIT */
/* Forward substitution with one triangular block. Substitution and not a product with the inverse, whose
   error grows with the condition of the block.

   Four threads hold a column of B in registers, each two rows of every eight. A pass of the loop solves for
   eight rows: the four threads tell each other theirs, each solves for all eight, so that they need not talk
   between rows, and takes them out of its other rows. Then the registers move on; an unrolled loop is slower,
   because its instructions come from memory (18 us a launch instead of 11: H200). */
#ifndef GPB_SUBSTITUTE_CUH
#define GPB_SUBSTITUTE_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_substitute(const gpb_substitute_args &g)
{
    constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PARTS = 4, PASS = 2 * PARTS, CHUNKS = N / PASS;
    static_assert(GPB_SUBSTITUTE_COLUMNS * PARTS == GPB_SUBSTITUTE_THREADS, "four threads a column");
    __shared__ __align__(16) T l[N + 1][N];          /* [column][row], and room behind the last */
    __shared__ T inverse[N];
    const int part = threadIdx.x % PARTS, lane = threadIdx.x % 32;
    const int64_t col = (int64_t)blockIdx.x * GPB_SUBSTITUTE_COLUMNS + threadIdx.x / PARTS;
    const bool across = g.csl == 1 || g.csl == -1, there = col < g.cols;
    T *b = (T *)g.b + col * g.csb, x[2 * CHUNKS];
#pragma unroll
    for (int y = 0; y < N * N / GPB_SUBSTITUTE_THREADS; y++) {
        const int number = y * GPB_SUBSTITUTE_THREADS + (int)threadIdx.x;
        const int i = across ? number / N : number % N, j = across ? number % N : number / N;
        const bool read = i < g.n && j < i + !g.unit;
        const T e = read ? gpb_element_at((const T *)g.l + i * g.rsl + j * g.csl) : T();
        l[j][i] = gpb_conjugate(e, g.conj);
    }
    const T alpha = gpb_scalar<T>::of(g.alpha);
    const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0;
#pragma unroll
    for (int c = 0; c < 2 * CHUNKS; c++) {
        const int i = c / 2 * PASS + 2 * part + c % 2;
        x[c] = there && i < g.n ? gpb_element_at(b + i * g.rsb) : T();
        if (scales) x[c] = gpb_product(alpha, x[c]);
    }
    __syncthreads();
    bool usual = true;                               /* a product with the inverse is as good as a division */
    if (!g.unit && threadIdx.x < g.n) {
        const T y = l[threadIdx.x][threadIdx.x];
        inverse[threadIdx.x] = gpb_quotient(gpb_from_real<T>(1), y);
        usual = gpb_inverts(y);
    }
    usual = __syncthreads_and(usual);
#pragma unroll 1
    for (int first = 0; first < g.n; first += PASS) {
        const T(*rows)[N] = &l[first];
        T found[PASS];
#pragma unroll
        for (int s = 0; s < PASS; s++) found[s] = gpb_shuffled(x[s % 2], lane / PARTS * PARTS + s / 2);
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            if (!g.unit && first + s < g.n)
                found[s] = usual ? gpb_times(found[s], inverse[first + s])
                                 : gpb_quotient(found[s], rows[s][first + s]);
#pragma unroll
            for (int r = s + 1; r < PASS; r++)
                found[r] = gpb_minus_product(found[r], rows[s][first + r], found[s]);
        }
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            const int i = first + s;
            if (part == s / 2 && there && i < g.n) gpb_element_put(b + i * g.rsb, found[s]);
        }
#pragma unroll
        for (int c = 2; c < 2 * CHUNKS; c++) {
            /* Beyond the last row is something else, for registers that nobody uses any more. A branch for
               each eight rows would cost more than the products. */
            if (c == CHUNKS && first + c / 2 * PASS >= N) break;
#pragma unroll
            for (int s = 0; s < PASS; s++)
                x[c] = gpb_minus_product(x[c], rows[s][first + c / 2 * PASS + 2 * part + c % 2], found[s]);
        }
#pragma unroll
        for (int c = 2; c < 2 * CHUNKS; c++) x[c - 2] = x[c];
    }
}

#endif
