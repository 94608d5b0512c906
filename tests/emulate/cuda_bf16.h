/* SPDX-License-Identifier: MIT */
/* The same of BF16 numbers. */
#ifndef GPB_EMULATE_CUDA_BF16_H
#define GPB_EMULATE_CUDA_BF16_H

#include <cmath>

#include "tests/emulate/cuda.h"

struct __nv_bfloat16 { uint16_t bits; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return { std::isnan(x) ? (uint16_t)0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) };
}
static inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((uint32_t)x.bits << 16); }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return { x, y }; }

#endif
