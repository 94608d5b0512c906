/* SPDX-License-Identifier: MIT */
/* CUDA's FP16 numbers, as far as the slicers use them. They are rounded to nearest, ties to even. */
#ifndef GPB_EMULATE_CUDA_FP16_H
#define GPB_EMULATE_CUDA_FP16_H

#include <cmath>

#include "tests/emulate/cuda.h"

struct alignas(4) __half2 { uint16_t x, y; };

static inline uint16_t gpb_emulate_half(float x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float size = std::fabs(x);
    if (!(size < 65520)) return sign | (std::isnan(x) ? 0x7e00 : 0x7c00);
    if (size < 0x1p-14f) return sign | (uint16_t)std::nearbyint(size * 0x1p24f);
    const uint32_t bits = __float_as_uint(size);
    return sign | (uint16_t)(((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10));
}
static inline float gpb_emulate_float(uint16_t half)
{
    const int exponent = half >> 10 & 31, units = half & 1023;
    const float x = exponent == 31 ? (units ? NAN : INFINITY)
                    : exponent     ? std::ldexp((float)(1024 + units), exponent - 25)
                                   : (float)units * 0x1p-24f;
    return half & 0x8000 ? -x : x;
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return { gpb_emulate_half(x), gpb_emulate_half(y) };
}
static inline float2 __half22float2(__half2 x) { return { gpb_emulate_float(x.x), gpb_emulate_float(x.y) }; }

#endif
