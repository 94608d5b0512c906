/* SPDX-License-Identifier: MIT */
/* gpb_ssplit: operands into scaled FP16 (or BF16) slices (split.h), both in one launch. A block takes 16 whole rows of X: it reads them once
   for their largest elements, and again, by then mostly from the level-2 cache, to cut them.

   Guard words (gemm_args.h) are set to level 2 for
   - a row with NaN or Inf, or whose largest element lies outside 2^-60..2^60: FP32 arithmetic has rules there that slices have not;
   - a row with fewer than 32 non-zeros: FP32 rounds few products fewer times than slices are inexact (identity, diagonal, banded);
   - an element 80 or more powers of two below its row's largest: products of two such leave the range even of BF16 slices;
   and to level 1 for
   - an element so far below its row's largest that its FP16 slices miss it by more than t 2^-24 of itself, or that its high slice alone does
     by more than t 2^-12 (low times low is never formed), t = max(2, sqrt(k) / 4): the componentwise bound would not hold for every B. */
#ifndef GPB_SPLIT_SLICES_CUH
#define GPB_SPLIT_SLICES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/names.h"
#include "kernels/ptx.cuh"
#include "kernels/split.h"

constexpr int GPB_SPLIT_OCTETS = GPB_SPLIT_THREADS / GPB_SPLIT_STRIP;      /* eights of k that the block's threads cover at once */
constexpr int GPB_SPLIT_STEP = GPB_SPLIT_OCTETS * 8;
constexpr int GPB_SPLIT_TOP = 14, GPB_SPLIT_WIDE_TOP = 30;                 /* exponent of a scaled row's largest element: FP16, BF16 */
constexpr int GPB_SPLIT_SPREAD = 80;                                       /* powers of two that a row may reach over */
constexpr unsigned GPB_SPLIT_FEWEST = 32;                                  /* non-zeros of a row that has any */
constexpr int GPB_SPLIT_REACH = 60;                                        /* exponents that a row's largest may have, either sign */

/* Eight neighbours in k of one row, from p on; zeros beyond `left`. */
struct gpb_octet {
    float x[8];

    /* from: the first; step: from one to the next; vector: two 16-byte loads are possible. */
    __device__ __forceinline__ void load(const float *from, int64_t step, int64_t left, bool vector)
    {
        if (vector && left >= 8) {
            const float4 lower = __ldg((const float4 *)from), upper = __ldg((const float4 *)from + 1);
            x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
            x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
            return;
        }
#pragma unroll
        for (int q = 0; q < 8; q++)
            x[q] = q < left ? __ldg(from + q * step) : 0;
    }
};

/* Cuts an octet and stores its slices; the level of its elements. t: see above. */
template <int SLICES> static __device__ __forceinline__ int gpb_cut(const gpb_octet &o, float scale, float t, char *to, int64_t next_slice)
{
    __half2 high[4], low[4];
    bool wide = false, far = false;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float x = o.x[2 * q] * scale, y = o.x[2 * q + 1] * scale;
        constexpr float least = GPB_SPLIT_TOP - GPB_SPLIT_SPREAD == -66 ? 0x1p-66f : 0;
        far |= (fabsf(x) < least && x != 0) || (fabsf(y) < least && y != 0);
        high[q] = __floats2half2_rn(x, y);
        const float2 h = __half22float2(high[q]);
        const float dx = x - h.x, dy = y - h.y;
        wide |= fabsf(dx) > t * 0x1p-12f * fabsf(x) || fabsf(dy) > t * 0x1p-12f * fabsf(y);
        if (SLICES == 1) continue;
        low[q] = __floats2half2_rn(dx * 0x1p11f, dy * 0x1p11f);
        const float2 l = __half22float2(low[q]);
        wide |= fabsf(dx - l.x * 0x1p-11f) > t * 0x1p-24f * fabsf(x) || fabsf(dy - l.y * 0x1p-11f) > t * 0x1p-24f * fabsf(y);
    }
    *(uint4 *)to = *(const uint4 *)high;
    if (SLICES > 1) *(uint4 *)(to + next_slice) = *(const uint4 *)low;
    return far ? 2 : wide;
}

/* Three BF16 slices of eight bits and a sign are exact: what the rounding of one leaves is for the next. */
template <> __device__ __forceinline__ int gpb_cut<3>(const gpb_octet &o, float scale, float, char *to, int64_t next_slice)
{
    float x[8];
    bool far = false;
#pragma unroll
    for (int q = 0; q < 8; q++) {
        x[q] = o.x[q] * scale;
        constexpr float least = GPB_SPLIT_WIDE_TOP - GPB_SPLIT_SPREAD == -50 ? 0x1p-50f : 0;
        far |= fabsf(x[q]) < least && x[q] != 0;
    }
#pragma unroll
    for (int s = 0; s < 3; s++, to += next_slice) {
        __nv_bfloat162 slice[4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const __nv_bfloat16 a = __float2bfloat16_rn(x[2 * q]), b = __float2bfloat16_rn(x[2 * q + 1]);
            slice[q] = __halves2bfloat162(a, b);
            x[2 * q] -= __bfloat162float(a), x[2 * q + 1] -= __bfloat162float(b);
        }
        *(uint4 *)to = *(const uint4 *)slice;
    }
    return far ? 2 : 0;
}

/* The largest magnitude (as bits: they order as the floats do) and the non-zeros of each row of the strip. */
struct gpb_survey {
    unsigned largest[GPB_SPLIT_STRIP], nonzeros[GPB_SPLIT_STRIP];

    __device__ __forceinline__ void clear()
    {
        if (threadIdx.x < GPB_SPLIT_STRIP) largest[threadIdx.x] = nonzeros[threadIdx.x] = 0;
    }
};

static __device__ __forceinline__ void gpb_look(const gpb_octet &o, unsigned &largest, unsigned &nonzeros)
{
#pragma unroll
    for (int q = 0; q < 8; q++) {
        const unsigned bits = __float_as_uint(o.x[q]) & 0x7fffffff;
        largest = max(largest, bits);
        nonzeros += bits != 0;
    }
}

/* One thread's place in a strip of one member of an operand: its row, its first octet, and where they come from and go to. */
template <int SLICES> struct gpb_strip {
    int row, octet;
    int64_t i, k, chunks, rows;
    const float *src;
    char *dst;
    bool vector;

    __device__ __forceinline__ gpb_strip(const gpb_split_operand &x, int64_t depth, unsigned strip, int64_t l)
    {
        const bool along = x.cs == 1 && x.rs != 1;                         /* k is contiguous: neighbouring threads walk it */
        row = along ? threadIdx.x / GPB_SPLIT_OCTETS : threadIdx.x % GPB_SPLIT_STRIP;
        octet = along ? threadIdx.x % GPB_SPLIT_OCTETS : threadIdx.x / GPB_SPLIT_STRIP;
        i = (int64_t)strip * GPB_SPLIT_STRIP + row, rows = gpb_split_rows(x.rows), chunks = gpb_split_chunks(depth);
        k = i < x.rows ? depth : 0;                                        /* rows beyond the operand are zeros */
        src = x.src_items ? (const float *)x.src_items[l] : (const float *)x.src + l * x.stride;
        src += i < x.rows ? i * x.rs : 0;
        vector = along && ((uintptr_t)src & 15) == 0;
        dst = (char *)x.dst + l * gpb_split_bytes(x.rows, depth, SLICES);
    }
    __device__ __forceinline__ int cut(const gpb_octet &o, int64_t p, float scale, float t) const
    {
        const int64_t chunk = p / GPB_SPLIT_CHUNK, piece = p / 8 % 4 ^ i / 2 % 4;
        return gpb_cut<SLICES>(o, scale, t, dst + (chunk * SLICES * rows + i) * 64 + piece * 16, rows * 64);
    }
};

/* 2^-e of a row, by what was found of it; writes 2^e behind the slices; `level` is 2 for what FP32 has rules of its own for. */
template <int SLICES>
static __device__ __forceinline__ float gpb_scale(const gpb_split_operand &x, const gpb_strip<SLICES> &s, int64_t k, unsigned largest,
                                                  unsigned nonzeros, bool writes, int &level)
{
    constexpr int TOP = SLICES == 3 ? GPB_SPLIT_WIDE_TOP : GPB_SPLIT_TOP;
    const int top = largest ? (int)(largest >> 23) - 127 : 0;
    level = abs(top) > GPB_SPLIT_REACH || (nonzeros && nonzeros < GPB_SPLIT_FEWEST) ? 2 : 0;
    const int exponent = largest ? max(min(top, GPB_SPLIT_REACH), -GPB_SPLIT_REACH) - TOP : 0;
    if (writes) ((float *)(s.dst + gpb_split_scales(x.rows, k, SLICES)))[s.i] = __uint_as_float((unsigned)(127 + exponent) << 23);
    return __uint_as_float((unsigned)(127 - exponent) << 23);
}

static __device__ __forceinline__ float gpb_tolerance(int64_t k) { return fmaxf(2, 0.25f * sqrtf((float)k)); }

/* Sets the guard word of the strip's block to the highest level that any thread found; for all threads of the block. Strips of the same
   block meet here: the higher level stays, whatever was there before. */
template <int SLICES>
static __device__ __forceinline__ void gpb_mark(const gpb_split_operand &x, const gpb_strip<SLICES> &s, int64_t k, uint32_t *notice, int level)
{
    const bool extreme = __syncthreads_or(level == 2), wide = __syncthreads_or(level == 1);
    if (threadIdx.x || !(extreme || wide)) return;
    uint32_t *guard = (uint32_t *)(s.dst + gpb_split_guard(x.rows, k, SLICES)), *word = guard + s.i / GPB_GUARD;
    if (extreme) {
        atomicExch(word, GPB_GUARD_EXTREME(x.epoch));
    } else {
        for (uint32_t old = *word, seen; gpb_guard_level(old, x.epoch) == 0; old = seen)
            seen = atomicCAS(word, old, GPB_GUARD_WIDE(x.epoch));
        guard[gpb_split_guards(x.rows)] = x.epoch;
    }
    if (notice) *(volatile uint32_t *)notice = x.epoch;
}

template <int SLICES>
static __device__ __forceinline__ void gpb_split_strip(const gpb_split_operand &x, int64_t k, uint32_t *notice, unsigned strip, int64_t l)
{
    __shared__ gpb_survey survey;
    const gpb_strip<SLICES> s(x, k, strip, l);
    survey.clear();
    __syncthreads();
    unsigned largest = 0, nonzeros = 0;
#pragma unroll 2
    for (int64_t p = s.octet * 8; p < s.k; p += GPB_SPLIT_STEP) {
        gpb_octet o;
        o.load(s.src + p * x.cs, x.cs, s.k - p, s.vector);
        gpb_look(o, largest, nonzeros);
    }
    atomicMax(&survey.largest[s.row], largest);
    atomicAdd(&survey.nonzeros[s.row], nonzeros);
    __syncthreads();
    int level;
    const float scale = gpb_scale(x, s, k, survey.largest[s.row], survey.nonzeros[s.row], s.octet == 0, level), t = gpb_tolerance(k);
#pragma unroll 2
    for (int64_t p = s.octet * 8; p < s.chunks * GPB_SPLIT_CHUNK; p += GPB_SPLIT_STEP) {
        gpb_octet o;
        o.load(s.src + p * x.cs, x.cs, s.k - p, s.vector);
        level = max(level, s.cut(o, p, scale, t));
    }
    gpb_mark(x, s, k, notice, level);
}

/* The frame of gpb_ssplit and its relatives: which operand's strip, which members; `strip`: this block's, of all of both operands. */
template <class F>
static __device__ __forceinline__ void gpb_each_strip(const gpb_split_args &g, unsigned strip, F split)
{
    gpb_grid_trigger();
    const unsigned strips_a = (unsigned)GPB_SPLIT_STRIPS(g.a.rows), strips_b = (unsigned)GPB_SPLIT_STRIPS(g.b.rows);
    if (blockIdx.x == 0 && blockIdx.z == 0)
        for (int x = threadIdx.x; x < GPB_SPLIT_COUNTERS; x += GPB_SPLIT_THREADS) g.counters[x] = 0;
    if (strip >= strips_a + strips_b) return;                              /* launched for the counters alone */
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        if (g.if_a && g.if_a[l * g.stride_if_a] != g.epoch_if_a && g.if_b[l * g.stride_if_b] != g.epoch_if_b) continue;
        split(strip < strips_a ? g.a : g.b, strip < strips_a ? strip : strip - strips_a, l);
        __syncthreads();                                                   /* before the next member's survey */
    }
}

#endif
