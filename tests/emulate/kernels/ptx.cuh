/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx.cuh, because this folder comes first in the include path. */
#ifndef GPB_PTX_CUH
#define GPB_PTX_CUH

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
static inline void gpb_cp_async4(float *to, const float *from) { gpb_emulate_copy(to, from, 4, 4); }
static inline void gpb_cp_async_commit() { gpb_emulate_commit(); }
template <int LEFT> static inline void gpb_cp_async_wait() { gpb_emulate_wait(LEFT); }

#endif
