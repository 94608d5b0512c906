/* SPDX-License-Identifier: MIT */
/* Instead of CUDA's: pairs of FP16 numbers, as far as kernels use them. */
#ifndef GPB_EMULATE_CUDA_FP16_H
#define GPB_EMULATE_CUDA_FP16_H

#include <cmath>
#include <cstring>

#include "tests/emulate/cuda.h"

static inline float gpb_half_to_float(uint16_t x)
{
    const int exponent = x >> 10 & 31, fraction = x & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : std::ldexp((float)(exponent ? 1024 + fraction : fraction), (exponent ? exponent : 1) - 25);
    return x >> 15 ? -size : size;
}

/* To nearest, ties to even. */
static inline uint16_t gpb_half_of_float(float x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float size = std::fabs(x);
    if (std::isnan(x)) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    int exponent = size < 0x1p-14f ? -14 : std::ilogb(size);
    int fraction = (int)std::nearbyint(std::ldexp((double)size, 10 - exponent));
    if (fraction == 2048) fraction = 1024, exponent++;
    return (uint16_t)(sign | (fraction < 1024 ? fraction : (exponent + 15) << 10 | (fraction - 1024)));
}

struct alignas(4) __half2 { uint16_t x, y; };
static inline __half2 __floats2half2_rn(float x, float y) { return { gpb_half_of_float(x), gpb_half_of_float(y) }; }
static inline __half2 __float2half2_rn(float x) { return __floats2half2_rn(x, x); }
static inline float2 __half22float2(__half2 h) { return { gpb_half_to_float(h.x), gpb_half_to_float(h.y) }; }
static inline float __low2float(__half2 h) { return gpb_half_to_float(h.x); }
static inline float __high2float(__half2 h) { return gpb_half_to_float(h.y); }
static inline __half2 __habs2(__half2 h) { return { (uint16_t)(h.x & 0x7fff), (uint16_t)(h.y & 0x7fff) }; }
static inline __half2 __hadd2(__half2 a, __half2 b)
{
    const float2 x = __half22float2(a), y = __half22float2(b);
    return __floats2half2_rn(x.x + y.x, x.y + y.y);
}
static inline bool __hbeq2(__half2 a, __half2 b) { return a.x == b.x && a.y == b.y; }
static inline __half2 __hge2(__half2 a, __half2 b)
{
    const float2 x = __half22float2(a), y = __half22float2(b);
    return __floats2half2_rn(x.x >= y.x, x.y >= y.y);
}

#endif
