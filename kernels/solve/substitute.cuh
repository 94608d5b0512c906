/* SPDX-License-Identifier: MIT */
/* Forward substitution with one triangular block. Substitution and not a product with the inverse, whose
   error grows with the condition of the block. In a pass the four threads of a column tell each other their
   eight rows, each solves for all eight, so that they need not talk between rows, and takes them out of its
   other rows. */
#ifndef GPB_SUBSTITUTE_CUH
#define GPB_SUBSTITUTE_CUH

#include "kernels/solve/triangle.cuh"

template <class T> static __device__ __forceinline__ void gpb_substitute(const gpb_triangle_args &g)
{
    using triangle = gpb_triangle<T>;
    constexpr int N = triangle::N, PASS = triangle::PASS, CHUNKS = triangle::CHUNKS;
    __shared__ __align__(16) typename triangle::block l;
    __shared__ T inverse[N];
    const int part = triangle::part();
    const bool there = triangle::col() < g.cols;
    T *b = (T *)g.b + triangle::col() * g.csb, x[2 * CHUNKS];
    triangle::read(l, g);
    triangle::read(x, g);
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
        triangle::tell(found, x);
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
                x[c] = gpb_minus_product(x[c], rows[s][first + triangle::row(c)], found[s]);
        }
        triangle::move_on(x);
    }
}

#endif
