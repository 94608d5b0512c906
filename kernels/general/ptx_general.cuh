/* SPDX-License-Identifier: MIT */
/* PTX wrappers for general/. */
#ifndef GPB_GENERAL_PTX_CUH
#define GPB_GENERAL_PTX_CUH

#include "kernels/ptx.cuh"

/* The shared memory that the launch asked for. */
static __device__ __forceinline__ void *gpb_general_memory()
{
    extern __shared__ __align__(16) char gpb_general_shared[];
    return gpb_general_shared;
}

#endif
