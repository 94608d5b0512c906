/* SPDX-License-Identifier: MIT */
/* A triangle, or a piece of one, from one matrix to another, or columns in another order. One copy of the
   driver's cannot follow a triangle, and one for each column takes 4 us (H200). */
#ifndef GPB_SOLVE_TRAPEZOID_CUH
#define GPB_SOLVE_TRAPEZOID_CUH

#include "kernels/element.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_trapezoid(const gpb_trapezoid_args &g)
{
    const int64_t along = (g.rows + GPB_TRAPEZOID_THREADS - 1) / GPB_TRAPEZOID_THREADS;
    const int64_t i = blockIdx.x % along * GPB_TRAPEZOID_THREADS + threadIdx.x;
    const int64_t j0 = blockIdx.x / along * GPB_TRAPEZOID_COLUMNS;
#pragma unroll 8
    for (int64_t j = j0; j < j0 + GPB_TRAPEZOID_COLUMNS; j++) {
        if (i >= g.rows || j >= g.cols || (g.lower ? i < j + g.diagonal : i > j + g.diagonal)) continue;
        const int64_t of = g.columns ? g.columns[j] : j;
        gpb_element_put((T *)g.to + i + j * g.ldto, gpb_element_at((const T *)g.from + i + of * g.ldfrom));
    }
}

#endif
