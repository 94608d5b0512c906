/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ffma/ptx_ffma.cuh. */
#ifndef GPB_FFMA_PTX_CUH
#define GPB_FFMA_PTX_CUH

#include "kernels/ptx.cuh"

static inline unsigned gpb_shared_address(const float *p) { return gpb_emulate_shared_address(p); }

static inline void gpb_cp_async16_if(unsigned on, unsigned to, const float *from)
{
    if (on) gpb_emulate_copy(gpb_emulate_shared(to), from, 16, 16);
}
static inline void gpb_cp_async4_if(unsigned on, unsigned to, const float *from)
{
    if (on) gpb_emulate_copy(gpb_emulate_shared(to), from, 4, 4);
}
static inline void gpb_fence_here(unsigned) {}

#endif
