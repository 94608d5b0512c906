/* SPDX-License-Identifier: MIT */
/* Instead of kernels/shapes/ptx_shapes.cuh. */
#ifndef GPB_SHAPES_PTX_CUH
#define GPB_SHAPES_PTX_CUH

#include "kernels/ptx.cuh"

static inline void gpb_cp_async16_of(unsigned to, const float *from, int bytes)
{
    gpb_emulate_copy(gpb_emulate_shared(to), from, bytes, 16);
}
static inline void gpb_cp_async4_of(unsigned to, const float *from, int bytes)
{
    gpb_emulate_copy(gpb_emulate_shared(to), from, bytes, 4);
}
static inline void gpb_cp_async16(unsigned to, const float *from)
{
    gpb_emulate_copy(gpb_emulate_shared(to), from, 16, 16);
}
static inline void gpb_cp_async4(unsigned to, const float *from)
{
    gpb_emulate_copy(gpb_emulate_shared(to), from, 4, 4);
}
template <int SIZE> static inline void gpb_cp_async_of(unsigned to, const void *from, int bytes)
{
    gpb_emulate_copy(gpb_emulate_shared(to), (const float *)from, bytes, SIZE);
}
static inline void gpb_prefetch(const void *) {}
alignas(1024) static float gpb_slab_memory[58368];      /* 228 KB */
static inline float *gpb_dynamic_memory() { return gpb_slab_memory; }

#endif
