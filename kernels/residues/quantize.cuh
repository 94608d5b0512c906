/* SPDX-License-Identifier: MIT */
/* gpb_?residues makes integers of the rows of an operand, and residues of those (residues.h), of both
   operands in one launch. A block takes a strip, which is whole rows of X. It reads them once for their
   norms, and again, then mostly from the level-2 cache, to convert them.

   A guard word is set to EXTREME for
   - a row with NaN or Inf, or whose largest element lies outside 2^-480..2^480, because FP64 arithmetic has
     rules there that integers have not;
   - a row with too few elements near its root mean square. For such rows the bound of README.md would be
     larger than that of FMAs. */
#ifndef GPB_RESIDUES_QUANTIZE_CUH
#define GPB_RESIDUES_QUANTIZE_CUH

#include "kernels/element.cuh"
#include "kernels/guard.cuh"
#include "kernels/names.h"
#include "kernels/residues/moduli.cuh"
#include "kernels/sliced.h"

constexpr int GPB_RESIDUE_PIECE = 16;      /* k that a thread converts at once: 16 bytes of each plane */
constexpr int GPB_RESIDUE_PIECES = GPB_SLICE_THREADS / GPB_SLICE_STRIP;
constexpr int GPB_RESIDUE_STEP = GPB_RESIDUE_PIECES * GPB_RESIDUE_PIECE;

/* The upper half of |x|. Not 0 unless x is. */
static __device__ __forceinline__ unsigned gpb_magnitude(double x)
{
    const unsigned high = (unsigned)__double2hiint(x) & 0x7fffffff;
    return high | (__double2loint(x) != 0 && high == 0);
}

/* An element's real numbers, and op's. */
static __device__ __forceinline__ void gpb_parts_of(double x, bool, double (&part)[1]) { part[0] = x; }
static __device__ __forceinline__ void gpb_parts_of(double2 x, bool conj, double (&part)[2])
{
    part[0] = x.x;
    part[1] = conj ? -x.y : x.y;
}

/* What all threads of a block find out about its rows. */
struct gpb_residue_stats {
    double square[GPB_SLICE_STRIP][GPB_RESIDUE_PIECES];    /* sums of squares, by thread */
    unsigned top[GPB_SLICE_STRIP];                         /* the largest gpb_magnitude */
    unsigned many[GPB_RESIDUE_THETAS][GPB_SLICE_STRIP];    /* elements of at least that share */

    __device__ __forceinline__ void clear()
    {
        if (threadIdx.x < GPB_SLICE_STRIP) {
            top[threadIdx.x] = 0;
            for (int x = 0; x < GPB_RESIDUE_THETAS; x++) many[x][threadIdx.x] = 0;
        }
    }
    /* In a fixed order, because the norm decides how a row is scaled. */
    __device__ __forceinline__ double norm(int row) const
    {
        double sum = 0;
        for (int x = 0; x < GPB_RESIDUE_PIECES; x++) sum += square[row][x];
        return sqrt(sum);
    }
    /* True if the elements of every pair of rows that pass overlap enough: README.md. reals: how many real
       numbers the row has. */
    __device__ __forceinline__ bool passes(int row, float reals) const
    {
        float most = 0;
        for (int x = 0; x < GPB_RESIDUE_THETAS; x++) {
            const float theta = (float)gpb_residue_theta(x), f = (float)many[x][row] / reals;
            most = fmaxf(most, (2 * f - 1) * theta * theta);
        }
        return most * GPB_RESIDUE_KAPPA * sqrtf(reals) >= 1.001f;
    }
};

/* The power of two for a row of that norm. */
static __device__ __forceinline__ int gpb_residue_exponent(double norm)
{
    const unsigned high = (unsigned)__double2hiint(norm);
    const int exponent = (int)(high >> 20) - 1023;
    if (exponent <= -1023 || exponent >= 1024) return 0;   /* a row of zeros, or one that is marked */
    const double scaled = __hiloint2double((int)((high & 0xfffff) | (1023 + 58) << 20), __double2loint(norm));
    return (scaled <= GPB_RESIDUE_LIMIT ? 58 : 57) - exponent;
}

static __device__ __forceinline__ double gpb_power_of_two(int exponent)
{
    return __hiloint2double((1023 + exponent) << 20, 0);
}

/* Eight signed digits of a number, the lowest in the first byte of `low`. */
struct gpb_digits {
    int low, high;
    __device__ __forceinline__ gpb_digits(long long x = 0)
    {
        const unsigned long long half = 0x8080808080808080, digits = ((unsigned long long)x + half) ^ half;
        low = (int)digits;
        high = (int)(digits >> 32);
    }
};

/* In the low byte of the result, the residue nearest to 0. The sums are the mantissa of a float from
   1.5 2^23 on, because conversions are slow. */
static __device__ __forceinline__ unsigned gpb_residue_of(gpb_digits x, const gpb_modulus &by)
{
    constexpr float HALF = 12582912;       /* 1.5 2^23 = 0x4b400000 */
    const int sum = __dp4a(x.high, by.high, __dp4a(x.low, by.low, 0x4b400000));
    const float quotient = fmaf(__int_as_float(sum) - HALF, by.inverse, HALF);
    return (unsigned)sum - by.p * (unsigned)__float_as_int(quotient);
}

/* The low bytes of four numbers. */
static __device__ __forceinline__ unsigned gpb_low_bytes(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/* Stores the residues of 16 numbers. STEP: planes from a modulus to the next. */
template <int STEP>
static __device__ __forceinline__ void gpb_store_residues(const gpb_digits (&x)[GPB_RESIDUE_PIECE], char *to,
                                                          int64_t plane_bytes)
{
#pragma unroll 1
    for (int l = 0; l < GPB_RESIDUE_MODULI; l++, to += STEP * plane_bytes) {
        const gpb_modulus &by = gpb_residue_table.of[l];
        unsigned word[4];
#pragma unroll
        for (int q = 0; q < 4; q++)
            word[q] = gpb_low_bytes(gpb_residue_of(x[4 * q], by), gpb_residue_of(x[4 * q + 1], by),
                                    gpb_residue_of(x[4 * q + 2], by), gpb_residue_of(x[4 * q + 3], by));
        *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* One thread's place in a strip. */
template <class T> struct gpb_residue_strip {
    static constexpr int REALS = GPB_REALS<T>;
    int row, piece;
    int64_t i, k, cs;
    const T *src;                          /* NULL: no such row */
    bool k_major, conj;

    __device__ __forceinline__ gpb_residue_strip(const gpb_slice_operand &x, int64_t depth, bool conjugated,
                                                 unsigned strip, int64_t l)
    {
        k_major = x.cs == 1 && x.rs != 1;
        row = k_major ? threadIdx.x / GPB_RESIDUE_PIECES : threadIdx.x % GPB_SLICE_STRIP;
        piece = k_major ? threadIdx.x % GPB_RESIDUE_PIECES : threadIdx.x / GPB_SLICE_STRIP;
        i = (int64_t)strip * GPB_SLICE_STRIP + row;
        k = depth;
        cs = x.cs;
        conj = conjugated;
        src = x.src_items ? (const T *)x.src_items[l] : (const T *)x.src + l * x.stride;
        src = i < x.rows ? src + i * x.rs : NULL;
    }
    __device__ __forceinline__ void load(int64_t p, double (&part)[REALS]) const
    {
        gpb_parts_of(src && p < k ? gpb_element_at(src + p * cs) : T(), conj, part);
    }
};

template <class T>
static __device__ __forceinline__ void gpb_measure_strip(const gpb_residue_strip<T> &s,
                                                         gpb_residue_stats &stats)
{
    double square = 0;
    unsigned top = 0;
#pragma unroll 8
    for (int64_t p = s.piece; p < s.k; p += GPB_RESIDUE_PIECES) {
        double part[GPB_REALS<T>];
        s.load(p, part);
#pragma unroll
        for (int y = 0; y < GPB_REALS<T>; y++) {
            square = fma(part[y], part[y], square);
            top = max(top, gpb_magnitude(part[y]));
        }
    }
    stats.square[s.row][s.piece] = square;
    atomicMax(&stats.top[s.row], top);
}

/* Converts 16 k from p on, and counts elements. floor: magnitudes from which they count. */
template <class T>
static __device__ __forceinline__ void gpb_convert(const gpb_residue_strip<T> &s, int64_t p, double scale,
                                                   const unsigned (&floor)[GPB_RESIDUE_THETAS],
                                                   unsigned (&many)[GPB_RESIDUE_THETAS], char *to,
                                                   int64_t plane_bytes)
{
    constexpr int REALS = GPB_REALS<T>, PLANES = REALS == 1 ? 1 : 3;
    long long number[REALS][GPB_RESIDUE_PIECE];
#pragma unroll
    for (int q = 0; q < GPB_RESIDUE_PIECE; q++) {
        double part[REALS];
        s.load(p + q, part);
#pragma unroll
        for (int y = 0; y < REALS; y++) {
            const unsigned magnitude = gpb_magnitude(part[y]);
#pragma unroll
            for (int x = 0; x < GPB_RESIDUE_THETAS; x++) many[x] += magnitude >= floor[x];
            number[y][q] = __double2ll_rn(part[y] * scale);
        }
    }
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++) {
        gpb_digits digits[GPB_RESIDUE_PIECE];
#pragma unroll
        for (int q = 0; q < GPB_RESIDUE_PIECE; q++)
            digits[q] = plane < 2 ? number[plane % REALS][q] : number[0][q] + number[REALS - 1][q];
        gpb_store_residues<PLANES>(digits, to + plane * plane_bytes, plane_bytes);
    }
}

template <class T>
static __device__ __forceinline__ void gpb_residues_strip(const gpb_slice_operand &x, bool is_a, bool conj,
                                                          int64_t k, uint32_t *flagged, unsigned strip,
                                                          int64_t l)
{
    constexpr int COMPLEX = GPB_IS_COMPLEX<T>;
    __shared__ gpb_residue_stats stats;
    const gpb_residue_strip<T> s(x, k, conj, strip, l);
    char *dst = (char *)x.dst + l * gpb_residue_bytes(COMPLEX, is_a, x.rows, k);
    stats.clear();
    __syncthreads();
    gpb_measure_strip(s, stats);
    __syncthreads();
    const double norm = stats.norm(s.row), reals = (double)(GPB_REALS<T> * k), rms = norm / sqrt(reals);
    const int exponent = gpb_residue_exponent(norm);
    const double scale = gpb_power_of_two(exponent);
    unsigned floor[GPB_RESIDUE_THETAS], many[GPB_RESIDUE_THETAS] = {};
#pragma unroll
    for (int y = 0; y < GPB_RESIDUE_THETAS; y++) floor[y] = gpb_magnitude(gpb_residue_theta(y) * rms) + 1;
    const int64_t rows = gpb_residue_rows(is_a, x.rows), plane_bytes = gpb_residue_chunks(k) * rows * 128;
    if (s.src)
        for (int64_t p = s.piece * GPB_RESIDUE_PIECE; p < gpb_residue_chunks(k) * GPB_RESIDUE_CHUNK;
             p += GPB_RESIDUE_STEP) {
            char *to = dst + (p / GPB_RESIDUE_CHUNK * rows + s.i) * 128;
            to += (p / GPB_RESIDUE_PIECE % 8 ^ s.i % 8) * 16;
            gpb_convert(s, p, scale, floor, many, to, plane_bytes);
        }
#pragma unroll
    for (int y = 0; y < GPB_RESIDUE_THETAS; y++) atomicAdd(&stats.many[y][s.row], many[y]);
    __syncthreads();
    if (s.piece || !s.src) return;
    ((int *)(dst + gpb_residue_exponents(COMPLEX, is_a, x.rows, k)))[s.i] = -exponent;
    const unsigned top = stats.top[s.row];
    if (top == 0 || (abs((int)(top >> 20) - 1023) <= GPB_RESIDUE_REACH && stats.passes(s.row, (float)reals)))
        return;
    uint64_t *guard = (uint64_t *)(dst + gpb_residue_guard(COMPLEX, is_a, x.rows, k));
    gpb_guard_raise(guard + s.i / gpb_residue_guard_rows(COMPLEX, is_a), GPB_MARK_EXTREME, x.epoch);
    if (flagged) *(volatile uint32_t *)flagged = 1;
}

template <class T> static __device__ __forceinline__ void gpb_residues(const gpb_slice_args &g)
{
    gpb_grid_trigger();
    const unsigned strips_a = (unsigned)GPB_SLICE_STRIPS(g.a.rows), strip = blockIdx.x;
    const bool is_a = strip < strips_a;
    if (strip >= strips_a + (unsigned)GPB_SLICE_STRIPS(g.b.rows)) return;
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        gpb_residues_strip<T>(is_a ? g.a : g.b, is_a, is_a ? g.conj_a : g.conj_b, g.k, g.flagged,
                              is_a ? strip : strip - strips_a, l);
        __syncthreads();                   /* before the next member's stats */
    }
}

#endif
