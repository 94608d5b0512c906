/* SPDX-License-Identifier: MIT */
/* One wrapper per PTX instruction: the only file with asm. */
#ifndef GPB_PTX_CUH
#define GPB_PTX_CUH

#include <stdint.h>

/* x itself, but the compiler cannot know: what is computed from it stays where it is written, instead of being computed early
   and kept. */
static __device__ __forceinline__ int64_t gpb_fresh(int64_t x)
{
    asm volatile("" : "+l"(x));
    return x;
}
static __device__ __forceinline__ double gpb_fresh(double x)
{
    asm volatile("" : "+d"(x));
    return x;
}

/* Ties registers to this place in the program: what writes them before it is not moved behind it, nor what reads them
   after it before it. */
template <int N> static __device__ __forceinline__ void gpb_pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

/* blockIdx.x, read anew: what is computed from it is not kept in registers from an earlier reading. */
static __device__ __forceinline__ unsigned gpb_block()
{
    unsigned x;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return x;
}

/* threadIdx.x, the same: for places that a loop around them would otherwise have computed before its first round. */
static __device__ __forceinline__ unsigned gpb_thread()
{
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

/* Of data that nobody writes: the level-2 cache fetches the 256 bytes around it, for other blocks that ask for its neighbours meanwhile. */
static __device__ __forceinline__ float gpb_load_around(const float *from)
{
#if __CUDA_ARCH__ >= 800
    float x;
    asm volatile("ld.global.nc.L2::256B.f32 %0, [%1];" : "=f"(x) : "l"(from));
    return x;
#else
    return __ldg(from);
#endif
}

/* A load (else 0) and a store that take place if number < count, without a branch: the compiler makes one for each of many in a row, or keeps
   what it knows of all of them in registers. */
static __device__ __forceinline__ float gpb_load_within(int number, int count, const float *from)
{
    float x;
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; mov.f32 %0, 0f00000000; @p ld.global.f32 %0, [%1]; }"
                 : "=&f"(x) : "l"(from), "r"(number), "r"(count) : "memory");
    return x;
}
static __device__ __forceinline__ void gpb_store_within(int number, int count, float *to, float x)
{
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; @p st.global.f32 [%0], %1; }" :: "l"(to), "f"(x), "r"(number), "r"(count) : "memory");
}

/* A barrier of `threads` threads of the block, by number. */
static __device__ __forceinline__ void gpb_named_barrier(unsigned number, unsigned threads)
{
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

/* Global to shared memory, 16 bytes, behind the thread's back and past the level-1 cache. Both addresses are multiples of 16.
   sm_80. */
static __device__ __forceinline__ void gpb_cp_async16(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

/* The same for 4 bytes, through the level-1 cache. sm_80. */
static __device__ __forceinline__ void gpb_cp_async4(float *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

/* Closes the group of the copies issued so far. */
static __device__ __forceinline__ void gpb_cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits until at most LEFT of this thread's newest groups are under way. */
template <int LEFT>
static __device__ __forceinline__ void gpb_cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }

/* Programmatic dependent launch (sm_90; nothing before it, or where the launch did not ask for it). From here on the launch that follows
   may be prepared; ... */
static __device__ __forceinline__ void gpb_grid_trigger()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* ... and it waits until the launch before it is complete. */
static __device__ __forceinline__ void gpb_grid_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
