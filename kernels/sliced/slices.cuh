/* SPDX-License-Identifier: MIT */
/* gpb_sslice cuts operands into scaled FP16 (or BF16) slices (sliced.h), both in one launch. A block takes a
   strip, which is whole rows of X. It reads them once for their largest elements, and again, then mostly from
   the level-2 cache, to cut them.

   Guard words (gemm_args.h) are set to level 2 for
   - a row with NaN or Inf, or whose largest element lies outside 2^-60..2^60, because FP32 arithmetic has
     rules there that slices have not;
   - a row with fewer than 32 elements within 2^24 of its largest, or with fewer than 64 elements, because
     FP32 rounds so few products less often than slices are inexact (identity, banded matrices, one dominating
     element);
   - an element 80 or more powers of two below its row's largest, because products of two such elements leave
     the range even of BF16 slices.

   They are set to level 1 (WIDE) for
   - an element so far below its row's largest that its FP16 slices miss it by more than t 2^-24 of itself, or
     that half a unit in the last place of its high slice is more than t 2^-12 of it, even if it is exact; t =
     max(2, sqrt(k) / 4). For one slice t = 2, which is TF32's precision.

   They are set to FULL (gemm_args.h), at level 0, for
   - an element whose high slice is subnormal;
   - a row whose elements are all exact in two slices, and some element needs both.

   ACCURACY.md has the proof for these limits. */
#ifndef GPB_SLICED_SLICES_CUH
#define GPB_SLICED_SLICES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/element.cuh"
#include "kernels/guard.cuh"
#include "kernels/names.h"
#include "kernels/sliced.h"

/* Octets of k that a block covers at once. */
constexpr int GPB_SLICE_OCTETS = GPB_SLICE_THREADS / GPB_SLICE_STRIP;
constexpr int GPB_SLICE_STEP = GPB_SLICE_OCTETS * 8;

/* An octet: eight neighbours in k of one row, from p on. Zeros beyond `left`. */
struct gpb_octet {
    float x[8];

    /* Loads from `from` on, `step` from one to the next. */
    __device__ __forceinline__ void load(const float *from, int64_t step)
    {
#pragma unroll
        for (int q = 0; q < 8; q++) x[q] = gpb_load_around(from + q * step);
    }
    __device__ __forceinline__ void load(const float *from, int64_t step, int64_t left)
    {
        if (left >= 8) return load(from, step);
#pragma unroll
        for (int q = 0; q < 8; q++)
            x[q] = q < left ? gpb_load_around(from + q * step) : 0;
    }
    /* The same for four complex numbers. `step` is in complex numbers, `left` in real ones. They may begin at
       any multiple of 4 bytes, and an imaginary part comes from the level-1 cache. */
    __device__ __forceinline__ void load(const float2 *from, int64_t step)
    {
#pragma unroll
        for (int q = 0; q < 8; q++) x[q] = gpb_load_around((const float *)(from + q / 2 * step) + q % 2);
    }
    __device__ __forceinline__ void load(const float2 *from, int64_t step, int64_t left)
    {
        if (left >= 8) return load(from, step);
#pragma unroll
        for (int q = 0; q < 8; q++)
            x[q] = q < left ? gpb_load_around((const float *)(from + q / 2 * step) + q % 2) : 0;
    }
    /* The same for neighbours in memory. `from` is a multiple of 16 bytes. */
    __device__ __forceinline__ void load_aligned(const float *from, int64_t left)
    {
        if (left < 8) return load(from, 1, left);
        const float4 lower = __ldg((const float4 *)from), upper = __ldg((const float4 *)from + 1);
        x[0] = lower.x;
        x[1] = lower.y;
        x[2] = lower.z;
        x[3] = lower.w;
        x[4] = upper.x;
        x[5] = upper.y;
        x[6] = upper.z;
        x[7] = upper.w;
    }
    /* The same for any `from`, p elements into its row: three aligned loads, of which the middle is used, if
       the row has elements around the octet. */
    __device__ __forceinline__ void load_shifted(const float *from, int64_t p, int64_t left)
    {
        const int shift = (int)((uintptr_t)from / 4 % 4);
        if (p < shift || left < 12) return load(from, 1, left);
        const float4 *at = (const float4 *)(from - shift), u = __ldg(at), v = __ldg(at + 1),
                     w = __ldg(at + 2);
        const float all[12] = { u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w };
#pragma unroll
        for (int q = 0; q < 8; q++)
            x[q] = shift == 0 ? all[q] : shift == 1 ? all[q + 1] : shift == 2 ? all[q + 2] : all[q + 3];
    }
    /* Loads eight elements from place p of a row on, with two aligned loads if the row has all of them. p may
       be negative. Zeros before 0 and from k on. */
    __device__ __forceinline__ void load_around(const float *row, int p, int k)
    {
        if (p >= 0 && p + 8 <= k) return load_aligned(row + p, 8);
#pragma unroll
        for (int q = 0; q < 8; q++)
            x[q] = p + q >= 0 && p + q < k ? __ldg(row + (p + q)) : 0;
    }
    /* Drops the first `shift` elements, shift < 4, and appends as many of `next`. */
    __device__ __forceinline__ void shift_in(int shift, const float (&next)[3])
    {
        float one[10];
#pragma unroll
        for (int q = 0; q < 10; q++) {
            const float here = q < 8 ? x[q] : next[q - 8], there = q < 7 ? x[q + 1] : next[q - 7];
            one[q] = shift & 1 ? there : here;
        }
#pragma unroll
        for (int q = 0; q < 8; q++) x[q] = shift & 2 ? one[q + 2] : one[q];
    }
};

/* Cuts an octet none of whose elements is below 2^-24 of its row's largest. It is at level 0 in any case:
   scaled, its elements are at least 2^-10, so `high` has 11 bits of them, and `low` has 11 bits of the rest,
   or its unit is 2^-36. */
template <int SLICES>
static __device__ __forceinline__ void gpb_cut_plain(const gpb_octet &o, float scale, char *to,
                                                     int64_t next_slice)
{
    __half2 high[4], low[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float x = o.x[2 * q] * scale, y = o.x[2 * q + 1] * scale;
        high[q] = __floats2half2_rn(x, y);
        const float2 h = __half22float2(high[q]);
        low[q] = __floats2half2_rn((x - h.x) * 0x1p11f, (y - h.y) * 0x1p11f);
    }
    *(uint4 *)to = *(const uint4 *)high;
    if (SLICES > 1) *(uint4 *)(to + next_slice) = *(const uint4 *)low;
}

/* Updates the smallest magnitude that is not 0, which begins as GPB_NO_NEAREST. It is twice the bits less
   one, so that 0 comes last. */
constexpr unsigned GPB_NO_NEAREST = 2 * 0x7f800000u - 1;
static __device__ __forceinline__ void gpb_nearest(const gpb_octet &o, unsigned &nearest)
{
#pragma unroll
    for (int q = 0; q < 8; q++) nearest = min(nearest, 2 * __float_as_uint(o.x[q]) - 1);
}

/* The mark of a row because of its smallest element, which is scaled here (to 0, perhaps). t: see above. */
template <int SLICES>
static __device__ __forceinline__ int gpb_mark_of(unsigned nearest, float scale, float t)
{
    constexpr int TOP = SLICES == 3 ? GPB_SLICE_WIDE_TOP : GPB_SLICE_TOP;
    const float x = __uint_as_float(nearest / 2 + 1) * scale,
                least = __uint_as_float((127 + TOP - GPB_SLICE_SPREAD) << 23);
    if (x < least) return GPB_MARK_EXTREME;
    if (SLICES < 3 && t * x < 0x1p-13f) return GPB_MARK_WIDE;
    return SLICES == 2 && x < 0x1p-14f ? GPB_MARK_FULL : 0;
}

/* Cuts an octet and stores its slices. Returns true if they miss one of its elements by too much. t: see
   above. */
template <int SLICES>
static __device__ __forceinline__ bool gpb_cut(const gpb_octet &o, float scale, float t, char *to,
                                               int64_t next_slice)
{
    __half2 high[4], low[4];
    bool missed = false;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float x = o.x[2 * q] * scale, y = o.x[2 * q + 1] * scale;
        high[q] = __floats2half2_rn(x, y);
        if (SLICES == 1) continue;
        const float2 h = __half22float2(high[q]);
        const float dx = x - h.x, dy = y - h.y;
        low[q] = __floats2half2_rn(dx * 0x1p11f, dy * 0x1p11f);
        const float2 l = __half22float2(low[q]);
        missed |= fabsf(dx - l.x * 0x1p-11f) > t * 0x1p-24f * fabsf(x)
                  || fabsf(dy - l.y * 0x1p-11f) > t * 0x1p-24f * fabsf(y);
    }
    *(uint4 *)to = *(const uint4 *)high;
    if (SLICES > 1) *(uint4 *)(to + next_slice) = *(const uint4 *)low;
    return missed;
}

/* Three BF16 slices of eight bits and a sign are exact: each slice takes the rest that the one before
   leaves. */
template <>
__device__ __forceinline__ bool gpb_cut<3>(const gpb_octet &o, float scale, float, char *to,
                                           int64_t next_slice)
{
    float x[8];
#pragma unroll
    for (int q = 0; q < 8; q++) x[q] = o.x[q] * scale;
#pragma unroll
    for (int s = 0; s < 3; s++, to += next_slice) {
        __nv_bfloat162 slice[4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const __nv_bfloat16 a = __float2bfloat16_rn(x[2 * q]), b = __float2bfloat16_rn(x[2 * q + 1]);
            slice[q] = __halves2bfloat162(a, b);
            x[2 * q] -= __bfloat162float(a);
            x[2 * q + 1] -= __bfloat162float(b);
        }
        *(uint4 *)to = *(const uint4 *)slice;
    }
    return false;
}

/* What a block knows of each row of the strip. largest: the largest magnitude, as bits, which are ordered
   like the floats. many: how many elements come within 2^24 of it; the others vanish in FP32's sums. low: an
   element has more than the 11 bits of a high slice. rest: one has more than the 22 bits of two slices. mark:
   the highest mark that any thread found. */
struct gpb_row_stats {
    unsigned largest[GPB_SLICE_STRIP], many[GPB_SLICE_STRIP], low[GPB_SLICE_STRIP], rest[GPB_SLICE_STRIP];
    int mark;

    __device__ __forceinline__ void clear()
    {
        const unsigned x = threadIdx.x;
        if (x < GPB_SLICE_STRIP) largest[x] = many[x] = low[x] = rest[x] = 0;
        if (x == 0) mark = 0;
    }
    /* bits: the bitwise or of a thread's elements. It is of all of them unless some have a rest. */
    __device__ __forceinline__ void note(int row, unsigned bits)
    {
        if (bits & 3) rest[row] = 1;
        else if (bits & 0x1fff) low[row] = 1;
    }
    /* The mark of a row whose elements are all exact in two slices, some of which need both. Counts, for
       example. */
    __device__ __forceinline__ int mark_of(int row) const
    {
        return low[row] && !rest[row] ? GPB_MARK_FULL : 0;
    }
};

static __device__ __forceinline__ unsigned gpb_bits(const gpb_octet &o)
{
    unsigned bits = 0;
#pragma unroll
    for (int q = 0; q < 8; q++) bits |= __float_as_uint(o.x[q]);
    return bits;
}

static __device__ __forceinline__ unsigned gpb_largest(const gpb_octet &o)
{
    unsigned largest = 0;
#pragma unroll
    for (int q = 0; q < 8; q++) largest = max(largest, __float_as_uint(o.x[q]) & 0x7fffffff);
    return largest;
}

/* Updates the largest and smallest magnitudes by the octet's first `left` elements. */
static __device__ __forceinline__ void gpb_reach(const gpb_octet &o, int left, unsigned &largest,
                                                 unsigned &smallest)
{
#pragma unroll
    for (int q = 0; q < 8; q += 2) {
        const unsigned x = __float_as_uint(o.x[q]) & 0x7fffffff, y = __float_as_uint(o.x[q + 1]) & 0x7fffffff;
        largest = max(max(largest, x), y);
        smallest = min(min(smallest, q < left ? x : ~0u), q + 1 < left ? y : ~0u);
    }
}

/* 2^-24 of that magnitude, or the smallest number above zero if that underflows. */
static __device__ __forceinline__ unsigned gpb_least(unsigned largest)
{
    return largest > 24u << 23 ? largest - (24u << 23) : 1;
}

static __device__ __forceinline__ unsigned gpb_count(const gpb_octet &o, float least)
{
    unsigned many = 0;
#pragma unroll
    for (int q = 0; q < 8; q++) many += fabsf(o.x[q]) >= least;
    return many;
}

/* How an operand is read: op(A), whose complex rows become two real ones each, or op(B); its conjugate. */
struct gpb_side {
    bool is_a, conj;
};

/* One thread's place in a strip of one member of an operand of type T: its row, its first octet, their source
   and destination. */
template <class T, int SLICES> struct gpb_strip {
    int row, octet;
    int64_t i, k, chunks, rows;
    const T *src;
    char *dst;
    /* Of complex numbers: what changes the sign of an imaginary part; the imaginary part comes first. */
    unsigned sign;
    bool swaps;
    /* How rows are loaded, the same for all threads. MN_MAJOR: rows are neighbours in memory. Else k is
       contiguous, and neighbouring threads walk along k. */
    enum { MN_MAJOR, K_ALIGNED, K_SHIFTED } layout;

    __device__ __forceinline__ gpb_strip(const gpb_slice_operand &x, gpb_side side, int64_t depth,
                                         unsigned strip, int64_t l)
    {
        const bool k_major = x.cs == 1 && x.rs != 1;
        row = k_major ? threadIdx.x / GPB_SLICE_OCTETS : threadIdx.x % GPB_SLICE_STRIP;
        octet = k_major ? threadIdx.x % GPB_SLICE_OCTETS : threadIdx.x / GPB_SLICE_STRIP;
        i = (int64_t)strip * GPB_SLICE_STRIP + row;
        rows = gpb_sliced_rows(x.rows);
        chunks = gpb_sliced_chunks(depth);
        const bool two = GPB_IS_COMPLEX<T> && side.is_a;
        const int64_t from = two ? gpb_sliced_complex_row(i) : i, end = two ? x.rows / 2 : x.rows;
        swaps = two && strip % 2;
        sign = side.conj != (two && !swaps) ? 0x80000000 : 0;
        k = from < end ? depth : 0;  /* rows beyond the operand are zeros */
        src = x.src_items ? (const T *)x.src_items[l] : (const T *)x.src + l * x.stride;
        layout = !k_major                                                ? MN_MAJOR
                 : (uintptr_t)src % 16 == 0 && x.rs % GPB_VECTOR<T> == 0 ? K_ALIGNED
                                                                         : K_SHIFTED;
        src += from < end ? from * x.rs : 0;
        dst = (char *)x.dst + l * gpb_sliced_bytes(x.rows, depth, SLICES);
    }
    __device__ __forceinline__ void load(gpb_octet &o, const gpb_slice_operand &x, int64_t p) const
    {
        if (layout == K_ALIGNED) o.load_aligned((const float *)src + p, k - p);
        else if (layout == K_SHIFTED) o.load_shifted((const float *)src + p, p, k - p);
        else o.load(src + p / GPB_REALS<T> * x.cs, x.cs, k - p);
        turn(o);
    }
    /* Makes the row's numbers of complex ones as they lie in memory. */
    __device__ __forceinline__ void turn(gpb_octet &o) const
    {
        if constexpr (GPB_IS_COMPLEX<T>)
#pragma unroll
        for (int q = 0; q < 8; q += 2) {
            const float re = o.x[q], im = __uint_as_float(__float_as_uint(o.x[q + 1]) ^ sign);
            o.x[q] = swaps ? im : re;
            o.x[q + 1] = swaps ? re : im;
        }
    }
    /* Where the high slice of the octet at p goes. Octets a multiple of 32 k further on lie chunk_bytes()
       further for each 32 k. */
    __device__ __forceinline__ char *place(int64_t p) const
    {
        const int64_t chunk = p / GPB_SLICE_CHUNK, piece = p / 8 % 4 ^ i / 2 % 4;
        return dst + (chunk * SLICES * rows + i) * 64 + piece * 16;
    }
    __device__ __forceinline__ int64_t chunk_bytes() const { return SLICES * rows * 64; }
};

/* 2^-e of a row. Writes 2^e behind the slices. */
template <class T, int SLICES>
static __device__ __forceinline__ float gpb_scale(const gpb_slice_operand &x, const gpb_strip<T, SLICES> &s,
                                                  int64_t k, unsigned largest, bool writes)
{
    constexpr int TOP = SLICES == 3 ? GPB_SLICE_WIDE_TOP : GPB_SLICE_TOP;
    const int top = (int)(largest >> 23) - 127;
    const int exponent = largest ? max(min(top, GPB_SLICE_REACH), -GPB_SLICE_REACH) - TOP : 0;
    if (writes)
        ((float *)(s.dst + gpb_sliced_scales(x.rows, k, SLICES)))[s.i] =
            __uint_as_float((unsigned)(127 + exponent) << 23);
    return __uint_as_float((unsigned)(127 - exponent) << 23);
}

/* The mark of a row for its largest element and for its number of elements that count. */
static __device__ __forceinline__ int gpb_row_mark(unsigned largest, unsigned many, int64_t k)
{
    return largest
                   && (abs((int)(largest >> 23) - 127) > GPB_SLICE_REACH
                       || many < (unsigned)gpb_sliced_fewest(k))
               ? GPB_MARK_EXTREME
               : 0;
}

template <int SLICES> static __device__ __forceinline__ float gpb_tolerance(int64_t k)
{
    return SLICES == 1 ? 2 : fmaxf(2, 0.25f * sqrtf((float)k));
}

/* Sets the guard word of the strip's block to the highest mark that any thread found. For all threads of the
   thread block. Strips of the same 128 rows share the word: the higher mark stays, whatever was there
   before. */
template <class T, int SLICES>
static __device__ __forceinline__ void gpb_mark(const gpb_slice_operand &x, const gpb_strip<T, SLICES> &s,
                                                int64_t k, uint32_t *flagged, gpb_row_stats &stats, int mark)
{
    if (mark) atomicMax(&stats.mark, mark);
    __syncthreads();
    mark = stats.mark;
    if (threadIdx.x || !mark) return;
    uint64_t *guard = (uint64_t *)(s.dst + gpb_sliced_guard(x.rows, k, SLICES));
    gpb_guard_raise(guard + s.i / GPB_GUARD, mark, x.epoch);
    if (mark == GPB_MARK_WIDE) guard[gpb_sliced_guards(x.rows)] = x.epoch;
    if (mark >= GPB_MARK_WIDE && flagged) *(volatile uint32_t *)flagged = 1;
}

template <class T, int SLICES>
static __device__ __forceinline__ void gpb_slice_strip(const gpb_slice_operand &x, gpb_side side, int64_t k,
                                                       uint32_t *flagged, unsigned strip, int64_t l)
{
    __shared__ gpb_row_stats stats;
    const gpb_strip<T, SLICES> s(x, side, k, strip, l);
    stats.clear();
    __syncthreads();
    unsigned largest = 0, many = 0, bits = 0;
#pragma unroll 2
    for (int64_t p = s.octet * 8; p < s.k; p += GPB_SLICE_STEP) {
        gpb_octet o;
        s.load(o, x, p);
        largest = max(largest, gpb_largest(o));
        if (SLICES == 2) bits |= gpb_bits(o);
    }
    atomicMax(&stats.largest[s.row], largest);
    if (SLICES == 2) stats.note(s.row, bits);
    __syncthreads();
    largest = stats.largest[s.row];
    const float least = __uint_as_float(gpb_least(largest));
    const float scale = gpb_scale(x, s, k, largest, s.octet == 0), t = gpb_tolerance<SLICES>(k);
    unsigned nearest = GPB_NO_NEAREST;
    bool missed = false;
    char *to = s.place(s.octet * 8);
#pragma unroll 2
    for (int64_t p = s.octet * 8; p < s.chunks * GPB_SLICE_CHUNK; p += GPB_SLICE_STEP) {
        gpb_octet o;
        s.load(o, x, p);
        many += gpb_count(o, least);
        gpb_nearest(o, nearest);
        missed |= gpb_cut<SLICES>(o, scale, t, to, s.rows * 64);
        to += GPB_SLICE_STEP / GPB_SLICE_CHUNK * s.chunk_bytes();
    }
    atomicAdd(&stats.many[s.row], many);
    __syncthreads();
    int mark = max(gpb_row_mark(largest, stats.many[s.row], k), gpb_mark_of<SLICES>(nearest, scale, t));
    mark = max(mark, missed ? GPB_MARK_WIDE : stats.mark_of(s.row));
    gpb_mark(x, s, k, flagged, stats, mark);
}

/* The frame of gpb_sslice and its relatives. It finds which operand's strip and which members a block slices.
   strip: this block's number among the strips of both operands. */
template <class F>
static __device__ __forceinline__ void gpb_each_strip(const gpb_slice_args &g, unsigned strip, F slice)
{
    gpb_grid_trigger();
    const unsigned strips_a = (unsigned)GPB_SLICE_STRIPS(g.a.rows),
                   strips_b = (unsigned)GPB_SLICE_STRIPS(g.b.rows);
    if (blockIdx.x == 0 && blockIdx.z == 0)
        for (int x = threadIdx.x; x < GPB_SLICED_COUNTERS; x += GPB_SLICE_THREADS) g.counters[x] = 0;
    if (strip >= strips_a + strips_b) return;  /* launched for the counters alone */
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        if (g.if_a && g.if_a[l * g.stride_if_a] != g.epoch_if_a && g.if_b[l * g.stride_if_b] != g.epoch_if_b)
            continue;
        const bool is_a = strip < strips_a;
        slice(is_a ? g.a : g.b, gpb_side{ is_a, (is_a ? g.conj_a : g.conj_b) != 0 },
              is_a ? strip : strip - strips_a, l);
        __syncthreads();  /* before the next member's stats */
    }
}

template <class T> static __device__ __forceinline__ void gpb_slice(const gpb_slice_args &g)
{
    gpb_each_strip(g, blockIdx.x, [&](const gpb_slice_operand &x, gpb_side side, unsigned strip, int64_t l) {
        if (g.slices == 1) gpb_slice_strip<T, 1>(x, side, g.k, g.flagged, strip, l);
        else if (g.slices == 2) gpb_slice_strip<T, 2>(x, side, g.k, g.flagged, strip, l);
        else gpb_slice_strip<T, 3>(x, side, g.k, g.flagged, strip, l);
    });
}

/* gpb_<p>slice. */
#define GPB_SLICE_KERNEL(p)                                                     \
    extern "C" __global__ void __launch_bounds__(GPB_SLICE_THREADS, 3)          \
    GPB_SLICER_SYMBOL(p, slice)(const __grid_constant__ gpb_slice_args g)       \
    { gpb_slice<gpb_type_##p>(g); }

#endif
