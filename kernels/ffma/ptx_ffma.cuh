/* SPDX-License-Identifier: MIT */
/* PTX wrappers for ffma/. */
#ifndef GPB_FFMA_PTX_CUH
#define GPB_FFMA_PTX_CUH

#include "kernels/ptx.cuh"

/* An address in shared memory as the instructions below take it. */
static __device__ __forceinline__ unsigned gpb_shared_address(const float *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* gpb_cp_async16 and gpb_cp_async4 if `on` is not 0. They use a predicate, not a branch. sm_80. */
static __device__ __forceinline__ void gpb_cp_async16_if(unsigned on, unsigned to, const float *from)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }"
                 :: "r"(to), "l"(from), "r"(on) : "memory");
}
static __device__ __forceinline__ void gpb_cp_async4_if(unsigned on, unsigned to, const float *from)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 4; }"
                 :: "r"(to), "l"(from), "r"(on) : "memory");
}

/* Ends the thread if x, a small number, is negative. It never is, but the compiler cannot know and moves
   nothing across this place. */
static __device__ __forceinline__ void gpb_fence_here(unsigned x)
{
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 0; @p exit; }" :: "r"(x));
}

#endif
