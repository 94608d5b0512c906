/* SPDX-License-Identifier: MIT */
/* One wrapper for each PTX instruction. Only the ptx*.cuh files have asm. */
#ifndef GPB_PTX_CUH
#define GPB_PTX_CUH

#include <stdint.h>

/* Returns x, but the compiler cannot know that. So it computes values that depend on it where they are
   written, instead of early, and does not keep them. */
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

/* Ties registers to this place in the program: writes before it are not moved behind it, and reads behind it
   are not moved before it. */
template <int N> static __device__ __forceinline__ void gpb_pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N> static __device__ __forceinline__ void gpb_pin(int (&x)[N])
{
#pragma unroll
    for (int y = 0; y < N; y++) asm volatile("" : "+r"(x[y])::"memory");
}
template <int N> static __device__ __forceinline__ void gpb_pin(double (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+d"(x[i]) :: "memory");
}
template <int N> static __device__ __forceinline__ void gpb_pin(float2 (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i].x), "+f"(x[i].y) :: "memory");
}

/* blockIdx.x, read again, so values computed from it are not kept in registers from an earlier reading. */
static __device__ __forceinline__ unsigned gpb_block()
{
    unsigned x;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return x;
}

/* The same of threadIdx.x, for values that the compiler would otherwise compute before a loop. */
static __device__ __forceinline__ unsigned gpb_thread()
{
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

/* A load of data that nobody writes. The level-2 cache also fetches the 256 bytes around it, which other
   blocks are about to need. */
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

/* A load (else 0) and a store that take place if number < count. They use a predicate, because of many in a
   row the compiler makes as many branches, or keeps all their conditions in registers. */
static __device__ __forceinline__ float gpb_load_within(int number, int count, const float *from)
{
    float x;
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; mov.f32 %0, 0f00000000; @p ld.global.f32 %0, [%1]; }"
                 : "=&f"(x) : "l"(from), "r"(number), "r"(count) : "memory");
    return x;
}
static __device__ __forceinline__ void gpb_store_within(int number, int count, float *to, float x)
{
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; @p st.global.f32 [%0], %1; }"
                 :: "l"(to), "f"(x), "r"(number), "r"(count) : "memory");
}

/* The same of two numbers: the load at a multiple of 8 bytes, the store there if `aligned`, else anywhere. */
static __device__ __forceinline__ float2 gpb_load_within(int number, int count, const float2 *from)
{
    float2 x;
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %3, %4; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; "
                 "@p ld.global.v2.f32 {%0, %1}, [%2]; }"
                 : "=&f"(x.x), "=&f"(x.y) : "l"(from), "r"(number), "r"(count) : "memory");
    return x;
}
static __device__ __forceinline__ void gpb_store_within(int number, int count, float2 *to, float2 x,
                                                        bool aligned)
{
    asm volatile("{ .reg .pred p, q, r; setp.lt.s32 p, %3, %4; setp.ne.and.b32 q, %5, 0, p; "
                 "setp.eq.and.b32 r, %5, 0, p; @q st.global.v2.f32 [%0], {%1, %2}; "
                 "@r st.global.f32 [%0], %1; @r st.global.f32 [%0 + 4], %2; }"
                 :: "l"(to), "f"(x.x), "f"(x.y), "r"(number), "r"(count), "r"((int)aligned) : "memory");
}

/* 1 / x to about 20 bits, by one instruction that knows no subnormal numbers. */
static __device__ __forceinline__ float gpb_inverse_estimate(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static __device__ __forceinline__ double gpb_inverse_estimate(double x)
{
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}

/* 1 / sqrt(x) in the same way. */
static __device__ __forceinline__ double gpb_inverse_root_estimate(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}

/* A barrier with that number, for `threads` threads of the block. */
static __device__ __forceinline__ void gpb_named_barrier(unsigned number, unsigned threads)
{
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}

/* An address in shared memory as the instructions take it. */
static __device__ __forceinline__ unsigned gpb_shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Copies 16 bytes from global to shared memory asynchronously, past the level-1 cache. Both addresses are
   multiples of 16. sm_80. */
static __device__ __forceinline__ void gpb_cp_async16(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(gpb_shared_address(to)), "l"(from) : "memory");
}

/* The same for 4 bytes, through the level-1 cache. sm_80. */
static __device__ __forceinline__ void gpb_cp_async4(float *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(gpb_shared_address(to)), "l"(from) : "memory");
}

/* Copies 16, 8 or 4 bytes from global to shared memory asynchronously if `on` is not 0, by a predicate
   and not a branch. Both addresses are multiples of that. sm_80. */
template <int BYTES> static __device__ __forceinline__ void gpb_cp_async_if(unsigned on, unsigned to,
                                                                            const void *from)
{
    static_assert(BYTES == 16 || BYTES == 8 || BYTES == 4, "what cp.async copies");
    if (BYTES == 16)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }"
                     :: "r"(to), "l"(from), "r"(on) : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3; }"
                     :: "r"(to), "l"(from), "r"(on), "n"(BYTES) : "memory");
}

/* Closes the group of copies issued so far. */
static __device__ __forceinline__ void gpb_cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most LEFT of this thread's newest groups are in flight. */
template <int LEFT>
static __device__ __forceinline__ void gpb_cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

/* Programmatic dependent launch (sm_90; no effect before it, or if the launch did not ask for it). From here
   on the next launch may be prepared. */
static __device__ __forceinline__ void gpb_grid_trigger()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* The other end of it: waits until the previous launch is complete. */
static __device__ __forceinline__ void gpb_grid_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* A word by which thread blocks tell each other that what they wrote before it can be read. */
static __device__ __forceinline__ uint32_t gpb_load_acquire(const uint32_t *from)
{
    uint32_t x;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
    return x;
}
static __device__ __forceinline__ void gpb_store_release(uint32_t *to, uint32_t x)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(to), "r"(x) : "memory");
}

#endif
