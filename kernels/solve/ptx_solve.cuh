/* SPDX-License-Identifier: MIT */
/* What these kernels ask of the GPU that C++ has no words for: tests/emulate has it for the CPU. */
#ifndef GPB_PTX_SOLVE_CUH
#define GPB_PTX_SOLVE_CUH

#include <stdint.h>
#include <string.h>

#include "kernels/ptx.cuh"

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

/* An address in shared memory that stays in a register, because the compiler cannot compute it anew. */
static __device__ __forceinline__ unsigned gpb_shared_kept(const void *p)
{
    unsigned at = gpb_shared_address(p);
    asm volatile("" : "+r"(at));
    return at;
}
/* What has 4, 8 or 16 bytes at a multiple of as many in shared memory. */
template <class V> static __device__ __forceinline__ void gpb_shared_get(V &to, unsigned at)
{
    static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "one instruction");
    uint32_t w[sizeof(V) / 4];
    if constexpr (sizeof(V) == 4)
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w[0]) : "r"(at));
    else if constexpr (sizeof(V) == 8)
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(at));
    else
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at));
    memcpy(&to, w, sizeof to);
}
template <class V> static __device__ __forceinline__ void gpb_shared_put(unsigned at, const V &x)
{
    static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "one instruction");
    uint32_t w[sizeof(V) / 4];
    memcpy(w, &x, sizeof x);
    if constexpr (sizeof(V) == 4)
        asm volatile("st.shared.b32 [%0], %1;" :: "r"(at), "r"(w[0]) : "memory");
    else if constexpr (sizeof(V) == 8)
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" :: "r"(at), "r"(w[0]), "r"(w[1]) : "memory");
    else
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                     :: "r"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
}

#endif
