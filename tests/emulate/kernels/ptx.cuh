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
const void *__cvta_shared_to_generic(unsigned at);      /* declared for bodies that are not run */
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
static inline void gpb_cp_async_commit() { gpb_emulate_commit(); }
template <int LEFT> static inline void gpb_cp_async_wait() { gpb_emulate_wait(LEFT); }

#endif
