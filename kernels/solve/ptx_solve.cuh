/* SPDX-License-Identifier: MIT */
/* What these kernels ask of the GPU that C++ has no words for: tests/emulate has it for the CPU. */
#ifndef GPB_PTX_SOLVE_CUH
#define GPB_PTX_SOLVE_CUH

#include <stdint.h>

/* The shared memory that a launch brings. */
static __device__ __forceinline__ char *gpb_solve_memory()
{
    extern __shared__ __align__(16) char gpb_solve_shared[];
    return gpb_solve_shared;
}

/* A word that other thread blocks change meanwhile. */
static __device__ __forceinline__ uint32_t gpb_load_anew(const uint32_t *from)
{
    return *(const volatile uint32_t *)from;
}

#endif
