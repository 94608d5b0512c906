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

/* The same for 16, 8 or 4 bytes. */
template <int SIZE>
static __device__ __forceinline__ void gpb_cp_async_of(unsigned to, const void *from, int bytes)
{
    static_assert(SIZE == 16 || SIZE == 8 || SIZE == 4, "what cp.async copies");
    if (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     :: "r"(to), "l"(from), "r"(bytes), "n"(SIZE) : "memory");
}

/* Asks the level-2 cache for the line there. */
static __device__ __forceinline__ void gpb_prefetch(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"(from) : "memory");
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
