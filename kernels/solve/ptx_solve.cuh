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

/* A word of 4 or 8 bytes that other thread blocks change meanwhile, or wait for. It is read and written
   whole. */
template <class W> static __device__ __forceinline__ W gpb_load_anew(const W *from)
{
    return *(const volatile W *)from;
}
static __device__ __forceinline__ void gpb_store_now(uint64_t *to, uint64_t x)
{
    *(volatile uint64_t *)to = x;
}

#endif
