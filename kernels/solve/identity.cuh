/* SPDX-License-Identifier: MIT */
/* The identity, or a part of it: what an inverse is solved from. */
#ifndef GPB_IDENTITY_CUH
#define GPB_IDENTITY_CUH

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_identity(const gpb_identity_args &g)
{
    for (int64_t j = blockIdx.x; j < g.cols; j += gridDim.x)
        for (int64_t i = threadIdx.x; i < g.rows; i += GPB_IDENTITY_THREADS)
            gpb_element_put((T *)g.a + i + j * g.lda, i == j + g.below ? gpb_from_real<T>(1) : T());
}

#endif
