/* SPDX-License-Identifier: MIT */
/* Wrappers that belong into kernels/ptx.cuh. */
#ifndef GPB_FFMA_PTX_CUH
#define GPB_FFMA_PTX_CUH

#include "kernels/ptx.cuh"

/* An address as the instructions below take it. */
static __device__ __forceinline__ unsigned gpb_shared_address(const float *p) { return (unsigned)__cvta_generic_to_shared(p); }

/* gpb_cp_async16 and gpb_cp_async4 where `on` is not 0; nothing where it is: a predicate, not a branch. sm_80. */
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

/* to = from[0..3] where `on` is not 0; else `to` stays. Past the level-1 cache, for each sector is read once; the level-2 cache fetches its
   neighbours too: k goes on there. */
static __device__ __forceinline__ void gpb_load16_if(unsigned on, float (&to)[4], const float *from)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                 : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3]) : "l"(from), "r"(on));
}
/* By an address as gpb_shared_address gives it. */
static __device__ __forceinline__ void gpb_store_shared(unsigned to, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(to), "f"(x) : "memory");
}

#endif
