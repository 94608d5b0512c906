/* SPDX-License-Identifier: MIT */
/* gpb_?combine makes C of the residues that a RESIDUES kernel leaves, by the Chinese remainder theorem in
   integers of 128 bits, so that a sum that a double can represent is exact. */
#ifndef GPB_RESIDUES_COMBINE_CUH
#define GPB_RESIDUES_COMBINE_CUH

#include "kernels/epilogue.cuh"
#include "kernels/residues/moduli.cuh"
#include "kernels/residues/work.cuh"

/* x, by its residues: the sum of v q P / (p p') over the pairs of moduli, less the multiple of P that makes
   it less than P / 2 in magnitude. v has both residues of a pair; it need not be less than p p'. */
struct gpb_remainder {
    unsigned long long word[4] = {};

    __device__ __forceinline__ void add(unsigned first, unsigned second, const gpb_moduli_pair &of)
    {
        const unsigned v = first * of.first + second * of.second;          /* less than 2^27 */
#pragma unroll
        for (int y = 0; y < 4; y++) word[y] += (unsigned long long)v * of.weight.word[y];
    }
    /* x, rounded once if it has at most 64 bits. With more, its lower 64 are rounded by themselves before,
       which adds at most half as much again. */
    __device__ __forceinline__ double number() const
    {
        const unsigned long long upper = word[3] + (word[2] >> 32);
        const double times = rint((double)(long long)upper * gpb_residue_table.inverse);
        const unsigned long long multiple = (unsigned long long)times;     /* less than 2^31 */
        unsigned x[4];
        unsigned long long carry = 0, borrow = 0;
#pragma unroll
        for (int y = 0; y < 4; y++) {
            const unsigned long long sum = (word[y] & 0xffffffff) + carry,
                                     less = multiple * gpb_residue_table.product.word[y] + borrow;
            x[y] = (unsigned)sum - (unsigned)less;
            carry = (word[y] >> 32) + (sum >> 32);
            borrow = (less >> 32) + ((unsigned)sum < (unsigned)less);
        }
        unsigned long long low = (unsigned long long)x[1] << 32 | x[0],
                           high = (unsigned long long)x[3] << 32 | x[2];
        const bool negative = high >> 63;
        if (negative) {
            low = 0 - low;
            high = ~high + (low == 0);
        }
        /* high has at most 53 bits. */
        const double magnitude = fma((double)(long long)high, 0x1p64, (double)low);
        return negative ? -magnitude : magnitude;
    }
};

/* A pair's residues of four results, a byte each, at from and at next. */
static __device__ __forceinline__ void gpb_add_pair(gpb_remainder (&sum)[4][1], const unsigned *from,
                                                    const unsigned *next, int64_t, unsigned, unsigned,
                                                    const gpb_moduli_pair &of)
{
    const unsigned first = __ldcs(from), second = __ldcs(next);
#pragma unroll
    for (int y = 0; y < 4; y++) sum[y][0].add(first >> 8 * y & 0xff, second >> 8 * y & 0xff, of);
}

/* The residues of four complex results: re = t1 - t2, im = t3 - t1 - t2, with multiples of p that keep them
   positive. */
struct gpb_complex_residues {
    unsigned t1, t2, t3, p;

    __device__ __forceinline__ gpb_complex_residues(const unsigned *from, int64_t plane, unsigned modulus)
        : t1(__ldcs(from)), t2(__ldcs(from + plane)), t3(__ldcs(from + 2 * plane)), p(modulus)
    {
    }
    __device__ __forceinline__ unsigned re(int y) const
    {
        return (t1 >> 8 * y & 0xff) + p - (t2 >> 8 * y & 0xff);
    }
    __device__ __forceinline__ unsigned im(int y) const
    {
        return (t3 >> 8 * y & 0xff) + 2 * p - (t1 >> 8 * y & 0xff) - (t2 >> 8 * y & 0xff);
    }
};
static __device__ __forceinline__ void gpb_add_pair(gpb_remainder (&sum)[4][2], const unsigned *from,
                                                    const unsigned *next, int64_t plane, unsigned p,
                                                    unsigned p_next, const gpb_moduli_pair &of)
{
    const gpb_complex_residues first(from, plane, p), second(next, plane, p_next);
#pragma unroll
    for (int y = 0; y < 4; y++) {
        sum[y][0].add(first.re(y), second.re(y), of);
        sum[y][1].add(first.im(y), second.im(y), of);
    }
}

static __device__ __forceinline__ double gpb_scaled(const gpb_remainder (&of)[1], double up, double across)
{
    return of[0].number() * up * across;
}
static __device__ __forceinline__ double2 gpb_scaled(const gpb_remainder (&of)[2], double up, double across)
{
    return make_double2(of[0].number() * up * across, of[1].number() * up * across);
}

/* 2^e of a row of op(A) or a column of op(B). */
static __device__ __forceinline__ double gpb_residue_scale(const int *exponents, int64_t i)
{
    return __hiloint2double((1023 + __ldg(exponents + i)) << 20, 0);
}

template <class T> static __device__ __forceinline__ void gpb_combine(const gpb_gemm_args &g)
{
    constexpr int EACH = GPB_RESIDUE_WORDS / GPB_COMBINE_SPLIT, REALS = GPB_REALS<T>,
                  STEP = REALS == 1 ? 1 : 3;
    gpb_grid_wait();
    const gpb_residue_work<T> work(g);
    const int64_t plane = work.plane_words();
    const unsigned piece = blockIdx.x % GPB_COMBINE_SPLIT,
                   group = blockIdx.x / GPB_COMBINE_SPLIT % GPB_RESIDUE_CONSUMERS,
                   number = blockIdx.x / (GPB_COMBINE_SPLIT * GPB_RESIDUE_CONSUMERS);
    const gpb_residue_unit u = work.tile(number);
    const unsigned lane = threadIdx.x % 32;
    const int64_t i = u.tile_m * (int64_t)GPB_RESIDUE_BM + group * 64 + threadIdx.x / 32 * 16 + lane / 4;
    for (unsigned l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const gpb_tile<T> t = { g, l, 0, 0, 0, NULL, NULL };
        const gpb_target<T> to = gpb_target_of(t);
        const int *up = (const int *)((const char *)g.a + 4 * (int64_t)l * g.stride_a
                                      + gpb_residue_exponents(GPB_IS_COMPLEX<T>, 1, g.m, g.k));
        const int *across = (const int *)((const char *)g.b + 4 * (int64_t)l * g.stride_b
                                          + gpb_residue_exponents(GPB_IS_COMPLEX<T>, 0, g.n, g.k));
        if (!work.row_is_plain(g, l, i)) continue;
        const uint64_t unit = (uint64_t)l * work.PLANES * work.tiles + number;
        const unsigned *from = (const unsigned *)g.partials + work.word(unit, group, threadIdx.x);
#pragma unroll 1
        for (unsigned y = piece * EACH; y < (piece + 1) * EACH; y++) {
            const int64_t j = u.tile_n * (int64_t)GPB_RESIDUE_BN + 8 * y + lane % 4 * 2;
            if (!work.column_is_plain(g, l, j)) continue;
            gpb_remainder of[4][REALS];
            const unsigned *at = from + y * GPB_RESIDUE_GROUP;
#pragma unroll
            for (int x = 0; x < GPB_RESIDUE_PAIRS; x++) {
                const int m = 2 * x, next = min(m + 1, GPB_RESIDUE_MODULI - 1);
                gpb_add_pair(of, at + m * STEP * plane, at + next * STEP * plane, plane,
                             gpb_residue_table.of[m].p, gpb_residue_table.of[next].p,
                             gpb_residue_table.pair[x]);
            }
            const gpb_part<T> part(to, i, j);
#pragma unroll
            for (int x = 0; x < 4; x++) {
                const gpb_place to_c = { x / 2 * 8, x % 2 };
                if (part.has(to_c))
                    part.store(to_c, gpb_scaled(of[x], gpb_residue_scale(up, i + to_c.i),
                                                gpb_residue_scale(across, j + to_c.j)), part.old(to_c));
            }
        }
    }
}

#endif
