/* SPDX-License-Identifier: MIT */
/* PTX wrappers for shapes/ and sliced/direct.cuh. */
#ifndef GPB_SHAPES_PTX_CUH
#define GPB_SHAPES_PTX_CUH

#include "kernels/ptx.cuh"

/* Copies 16 bytes from global to shared memory, of which only the first `bytes` are read. The others become
   0. sm_80. */
static __device__ __forceinline__ void gpb_cp_async16_of(unsigned to, const float *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

/* The same for 4 bytes, or none. sm_80. */
static __device__ __forceinline__ void gpb_cp_async4_of(unsigned to, const float *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

/* The same without the count. */
static __device__ __forceinline__ void gpb_cp_async16(unsigned to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}
static __device__ __forceinline__ void gpb_cp_async4(unsigned to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(from) : "memory");
}

/* The shared memory that the launch asked for, by name and by a function, because the compiler makes
   different code of the two. */
extern __shared__ __align__(16) float gpb_slab_memory[];
static __device__ __forceinline__ float *gpb_dynamic_memory()
{
    extern __shared__ __align__(1024) float gpb_dynamic[];
    return gpb_dynamic;
}

#endif
