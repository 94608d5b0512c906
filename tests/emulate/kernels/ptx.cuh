/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx.cuh, because this folder comes first in the include path. */
#ifndef GPB_PTX_CUH
#define GPB_PTX_CUH

#include <cstdlib>

#include "tests/emulate/cuda.h"

static inline int64_t gpb_fresh(int64_t x) { return x; }
static inline double gpb_fresh(double x) { return x; }
template <class T, int N> static inline void gpb_pin(T (&)[N]) {}
template <class T> static inline bool __isGlobal(T) { return true; }
static inline void gpb_named_barrier(unsigned number, unsigned threads)
{
    gpb_emulate_named_barrier(number, threads);
}
static inline void gpb_grid_wait() {}
static inline void gpb_grid_trigger() {}
static inline unsigned gpb_block() { return blockIdx.x; }
static inline unsigned gpb_thread() { return threadIdx.x; }
static inline float gpb_load_within(int number, int count, const float *from)
{
    return number < count ? *from : 0;
}
static inline void gpb_store_within(int number, int count, float *to, float x)
{
    if (number < count) *to = x;
}
static inline float2 gpb_load_within(int number, int count, const float2 *from)
{
    if (number >= count) return float2();
    if ((uintptr_t)from % 8) abort();
    return *from;
}
static inline void gpb_store_within(int number, int count, float2 *to, float2 x, bool aligned)
{
    if (number >= count) return;
    if (aligned && (uintptr_t)to % 8) abort();
    memcpy((void *)to, &x, sizeof x);
}
static inline float gpb_load_around(const float *from) { return *from; }
static inline void gpb_cp_async4(float *to, const float *from) { gpb_emulate_copy(to, from, 4, 4); }
static inline unsigned gpb_shared_address(const void *p)
{
    return gpb_emulate_shared_address((const float *)p);
}
template <int BYTES> static inline void gpb_cp_async_if(unsigned on, unsigned to, const void *from)
{
    if (on) gpb_emulate_copy(gpb_emulate_shared(to), (const float *)from, BYTES, BYTES);
}

/* As far off as the hardware's may be, the same for the same number: 1 / x to a unit in the last place, to 20
   bits in double; 1 / sqrt(x) to 20 bits, and by the functions of CUDA to two units and one. The estimates
   know no subnormal numbers. */
static inline int gpb_emulate_off(double x, int most)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits * 0x9e3779b97f4a7c15 >> 32) % (most + 1);
}
template <class T> static inline T gpb_emulate_near(T y, double x, int most)
{
    const int off = gpb_emulate_off(x, most);
    for (int z = 0; z < std::abs(off) && std::isfinite(y) && y != 0; z++)
        y = std::nextafter(y, off < 0 ? (T)-INFINITY : (T)INFINITY);
    return y;
}
template <class T> static inline T gpb_emulate_flushed(T x)
{
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign((T)0, x) : x;
}
static inline double gpb_emulate_coarse(double y, double x)
{
    y *= 1 + gpb_emulate_off(x, 1 << 20) * 0x1p-41;
    return gpb_emulate_flushed(__hiloint2double(__double2hiint(y), 0));
}
static inline float gpb_inverse_estimate(float x)
{
    return gpb_emulate_flushed(gpb_emulate_near(1 / gpb_emulate_flushed(x), x, 1));
}
static inline double gpb_inverse_estimate(double x)
{
    return gpb_emulate_coarse(1 / gpb_emulate_flushed(x), x);
}
static inline double gpb_inverse_root_estimate(double x)
{
    return gpb_emulate_coarse(1 / std::sqrt(gpb_emulate_flushed(x)), x);
}
#define rsqrtf gpb_emulate_rsqrt
#define rsqrt  gpb_emulate_rsqrt
static inline float rsqrtf(float x) { return gpb_emulate_near((float)(1 / std::sqrt((double)x)), x, 2); }
static inline double rsqrt(double x)
{
    return gpb_emulate_near((double)(1 / std::sqrt((long double)x)), x, 1);
}

static inline uint32_t gpb_load_acquire(const uint32_t *from)
{
    gpb_emulate_pause();
    return *from;
}
static inline void gpb_store_release(uint32_t *to, uint32_t x) { *to = x; }
static inline void *__cvta_shared_to_generic(unsigned at) { return gpb_emulate_shared(at); }
static inline void gpb_cp_async_commit() { gpb_emulate_commit(); }
template <int LEFT> static inline void gpb_cp_async_wait() { gpb_emulate_wait(LEFT); }

#endif
