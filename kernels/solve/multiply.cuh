/* SPDX-License-Identifier: MIT */
/* The product of one triangular block with B, in B's place. The other triangle takes no part in it, because
   zeros there would make NaN of an infinite B. In a pass the four threads of a column tell each other their
   eight rows of B, and each adds their part to its own rows from there on; the first eight of these are then
   complete. */
#ifndef GPB_MULTIPLY_CUH
#define GPB_MULTIPLY_CUH

#include "kernels/solve/triangle.cuh"

template <class T> static __device__ __forceinline__ void gpb_multiply(const gpb_triangle_args &g)
{
    using triangle = gpb_triangle<T>;
    constexpr int N = triangle::N, PASS = triangle::PASS, CHUNKS = triangle::CHUNKS;
    __shared__ __align__(16) typename triangle::block l;
    const int part = triangle::part();
    const bool there = triangle::col() < g.cols;
    T *b = (T *)g.b + triangle::col() * g.csb, x[2 * CHUNKS], sum[2 * CHUNKS];
    triangle::read(l, g);
    triangle::read(x, g);
#pragma unroll
    for (int c = 0; c < 2 * CHUNKS; c++) sum[c] = g.unit ? x[c] : T();
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < g.n; first += PASS) {
        const T(*rows)[N] = &l[first];
        T of_b[PASS];
        triangle::tell(of_b, x);
#pragma unroll
        for (int s = 0; s < PASS; s++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int i = 2 * part + c;
                if (i >= s + g.unit && first + i < g.n)
                    sum[c] = gpb_plus_product(sum[c], rows[s][first + i], of_b[s]);
            }
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int i = first + 2 * part + c;
            if (there && i < g.n) gpb_element_put(b + i * g.rsb, sum[c]);
        }
#pragma unroll
        for (int c = 2; c < 2 * CHUNKS; c++) {
            /* As in substitute.cuh. */
            if (c == CHUNKS && first + c / 2 * PASS >= N) break;
#pragma unroll
            for (int s = 0; s < PASS; s++)
                sum[c] = gpb_plus_product(sum[c], rows[s][first + triangle::row(c)], of_b[s]);
        }
        triangle::move_on(x);
        triangle::move_on(sum);
    }
}

#endif
