/* SPDX-License-Identifier: MIT */
/* PTX wrappers for ffma/. */
#ifndef GPB_FFMA_PTX_CUH
#define GPB_FFMA_PTX_CUH

#include "kernels/ptx.cuh"

/* Ends the thread if x, a small number, is negative. It never is, but the compiler cannot know and moves
   nothing across this place. */
static __device__ __forceinline__ void gpb_fence_here(unsigned x)
{
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 0; @p exit; }" :: "r"(x));
}

#endif
