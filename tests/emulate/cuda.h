/* SPDX-License-Identifier: MIT */
/* CUDA's words for a C++ compiler: those that the kernels of ffma/, shapes/, solve/, and of sliced/
   direct.cuh, work.cuh, store.cuh and the slicers use. What the threads of a block share is static, and
   belongs to a thread of the system where blocks run together (emulate.h). */
#ifndef GPB_EMULATE_CUDA_H
#define GPB_EMULATE_CUDA_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/emulate/emulate.h"

#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline
#ifdef GPB_EMULATE_TOGETHER
#define __shared__ static thread_local
#else
#define __shared__ static
#endif
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __builtin_assume(x) ((void)0)

#define threadIdx gpb_emulate_at.thread
#define blockIdx  gpb_emulate_at.block
#define blockDim  gpb_emulate_at.threads
#define gridDim   gpb_emulate_at.grid

struct alignas(8) uint2 { unsigned x, y; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return { x, y }; }
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline double2 make_double2(double x, double y) { return { x, y }; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return { x, y, z, w }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }

/* The product is exact in double and the sum is rounded twice: as good as an FMA for the bound, and the
   same each time. */
static inline float __fmaf_rn(float a, float b, float c) { return (float)((double)a * b + c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }

static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }

using std::fabs;
using std::isfinite;
using std::max;
using std::min;
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }

/* Blocks run one after the other, so each sees what the ones before have written. */
template <class T> static inline T __ldcg(const T *from) { return *from; }
/* The GPU would end the program, too. */
template <class T> static inline T gpb_emulate_aligned(const T *from)
{
    if ((uintptr_t)from % sizeof(T)) abort();
    return *from;
}
template <class T> static inline T __ldcs(const T *from) { return gpb_emulate_aligned(from); }
template <class T> static inline T __ldg(const T *from) { return gpb_emulate_aligned(from); }
template <class T> static inline void __stcg(T *to, T x) { *to = x; }
template <class T> static inline void __stwb(T *to, T x) { *to = x; }
template <class T> static inline void __stcs(T *to, T x) { *to = x; }
static inline void __threadfence() {}
static inline unsigned atomicAdd(unsigned *at, unsigned more)
{
    const unsigned before = *at;
    *at += more;
    return before;
}
static inline int atomicAdd(int *at, int more)
{
    const int before = *at;
    *at += more;
    return before;
}
static inline int atomicMin(int *at, int x)
{
    const int before = *at;
    if (x < before) *at = x;
    return before;
}
static inline unsigned atomicMax(unsigned *at, unsigned x)
{
    const unsigned before = *at;
    if (x > before) *at = x;
    return before;
}
static inline int atomicMax(int *at, int x)
{
    const int before = *at;
    if (x > before) *at = x;
    return before;
}
static inline uint64_t atomicMax(unsigned long long *at, unsigned long long x)
{
    uint64_t before;
    memcpy(&before, at, sizeof before);
    if (x > before) memcpy(at, &x, sizeof x);
    return before;
}
static inline uint64_t atomicCAS(unsigned long long *at, uint64_t old, uint64_t x)
{
    uint64_t before;
    memcpy(&before, at, sizeof before);
    if (before == old) memcpy(at, &x, sizeof x);
    return before;
}
static inline unsigned atomicOr(unsigned *at, unsigned x)
{
    const unsigned before = *at;
    *at |= x;
    return before;
}
static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __double2hiint(double x)
{
    int halves[2];
    memcpy(halves, &x, sizeof x);
    return halves[1];
}
static inline int __double2loint(double x)
{
    int halves[2];
    memcpy(halves, &x, sizeof x);
    return halves[0];
}
static inline double __hiloint2double(int high, int low)
{
    const int halves[2] = { low, high };
    double x;
    memcpy(&x, halves, sizeof x);
    return x;
}
static inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
static inline long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double __longlong_as_double(long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }
static inline long long __double2ll_rn(double x)
{
    /* Out of range the GPU gives the nearest number, 0 for NaN. */
    return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : llrint(x);
}
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline int __dp4a(int x, int y, int sum)
{
    for (int i = 0; i < 32; i += 8) sum += (signed char)(x >> i) * (signed char)(y >> i);
    return sum;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which)
{
    const uint64_t both = (uint64_t)y << 32 | x;
    unsigned to = 0;
    for (int i = 0; i < 4; i++) to |= (unsigned)(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
    return to;
}
static inline int64_t min(int64_t a, long long b) { return a < b ? a : (int64_t)b; }

/* Of all lanes of the warp. */
static inline int __any_sync(unsigned, int x)
{
    const char *all = gpb_emulate_show(&x, sizeof x, "any");
    bool any = false;
    for (int lane = 0; lane < 32; lane++)
        any |= *(const int *)(const void *)(all + lane * GPB_EMULATE_SHOWN) != 0;
    return any;
}

static inline int __all_sync(unsigned mask, int x) { return !__any_sync(mask, !x); }

/* The largest and the smallest of all lanes. */
static inline unsigned __reduce_max_sync(unsigned, unsigned x)
{
    const char *all = gpb_emulate_show(&x, sizeof x, "reduce");
    for (int lane = 0; lane < 32; lane++)
        x = max(x, *(const unsigned *)(const void *)(all + lane * GPB_EMULATE_SHOWN));
    return x;
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned x) { return ~__reduce_max_sync(mask, ~x); }

/* Of the lane whose number differs in those bits. */
template <class T> static inline T __shfl_xor_sync(unsigned, T x, int lanes)
{
    const char *all = gpb_emulate_show(&x, sizeof x, "shfl");
    T there;
    memcpy(&there, all + (threadIdx.x % 32 ^ (unsigned)lanes) * GPB_EMULATE_SHOWN, sizeof there);
    return there;
}

/* Of that lane, and of the lane so many further on (of the last ones, their own). */
template <class T> static inline T __shfl_sync(unsigned, T x, int lane)
{
    const char *all = gpb_emulate_show(&x, sizeof x, "shfl");
    memcpy(&x, all + lane % 32 * GPB_EMULATE_SHOWN, sizeof x);
    return x;
}
static inline float __shfl_sync(unsigned, float x, int lane, int)
{
    const char *all = gpb_emulate_show(&x, sizeof x, "shfl");
    memcpy(&x, all + lane * GPB_EMULATE_SHOWN, sizeof x);
    return x;
}
static inline float __shfl_down_sync(unsigned mask, float x, unsigned lanes, int width)
{
    const unsigned lane = threadIdx.x % 32;
    return __shfl_sync(mask, x, lane + lanes < 32 ? lane + lanes : lane, width);
}

#define GPB_PLACE_(file, line) file ":" #line
#define GPB_PLACE(file, line) GPB_PLACE_(file, line)
#define __syncthreads() gpb_emulate_block_barrier(GPB_PLACE(__FILE__, __LINE__))
#define __syncthreads_or(x) gpb_emulate_any(x, GPB_PLACE(__FILE__, __LINE__))
#define __syncthreads_and(x) !gpb_emulate_any(!(x), GPB_PLACE(__FILE__, __LINE__))
#define __syncwarp()    gpb_emulate_warp_barrier(GPB_PLACE(__FILE__, __LINE__))

#endif
