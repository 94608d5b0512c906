/* SPDX-License-Identifier: MIT */
/* Stores the sums of a SLICED kernel: scales them back by the powers of two of their row and column, then
   applies alpha, beta and the edges of C. */
#ifndef GPB_SLICED_STORE_CUH
#define GPB_SLICED_STORE_CUH

#include "kernels/sliced.h"
#include "kernels/epilogue.cuh"

/* So that one expression asks both types. (gpb_is_zero would move the instructions of the float kernels.) */
static __device__ __forceinline__ bool operator==(float2 x, float2 y) { return x.x == y.x && x.y == y.y; }

/* Exchanges sums so that each thread has one row. mma and wgmma lay out a 16 x BN strip as sum[4x..]: of the
   eight columns from 8x on, columns 2q and 2q+1 (q = lane % 4) of row lane / 4, then of the row 8 below.
   Afterwards a thread has four columns of those eight in one row. A store of a warp then covers 16 rows of
   two columns instead of 8 rows of four: 64 neighbouring bytes, of which fewer straddle sectors if C is not
   aligned. */
template <int N> static __device__ __forceinline__ void gpb_one_row(float (&sum)[N])
{
    const bool lower = threadIdx.x % 2;
#pragma unroll
    for (int x = 0; x < N; x++)
        if (x % 4 < 2) {
            const float other = __shfl_xor_sync(~0u, lower ? sum[x] : sum[x + 2], 1);
            sum[x] = lower ? other : sum[x];
            sum[x + 2] = lower ? sum[x + 2] : other;
        }
}

/* Stores a thread's row of a strip from column c on: four of every eight columns. cols: how many columns are
   within C. The old C is loaded before anything is stored, because the compiler cannot know that stores do
   not alias it and would wait for each load separately. */
template <int BN, bool BETA>
static __device__ __forceinline__ void gpb_store_row(const gpb_target<float> &to, float *c, int cols,
                                                     const float (&sum)[BN / 2])
{
    float old[BN / 2];
    /* gpb_fresh keeps these addresses from being kept for the stores, because they are 128 registers. */
    const float *from = (const float *)gpb_fresh((int64_t)c);
#pragma unroll
    for (int x = 0; BETA && x < BN / 2; x++, from += x % 4 ? to.ldc : 5 * to.ldc)
        old[x] = gpb_load_within(x / 4 * 8 + x % 4, cols, from);
#pragma unroll
    for (int x = 0; x < BN / 2; x++, c += x % 4 ? to.ldc : 5 * to.ldc)
        gpb_store_within(x / 4 * 8 + x % 4, cols, c,
                         BETA ? __fadd_rn(sum[x], __fmul_rn(to.beta, old[x])) : sum[x]);
}

/* The same for a complex row: two of every eight columns, the real parts in sum[4x] and sum[4x + 1], the
   imaginary parts behind them. Complex numbers may lie at any multiple of 4 bytes. */
template <int BN, bool BETA>
static __device__ __forceinline__ void gpb_store_row(const gpb_target<float2> &to, float2 *c, int cols,
                                                     const float (&sum)[BN / 2])
{
    const bool aligned = (uintptr_t)c % 8 == 0;
    float2 old[BN / 4];
    const float2 *from = (const float2 *)gpb_fresh((int64_t)c);
    if (BETA && aligned) {
#pragma unroll
        for (int x = 0; x < BN / 4; x++, from += x % 2 ? to.ldc : 7 * to.ldc)
            old[x] = gpb_load_within(x / 2 * 8 + x % 2, cols, from);
    } else if (BETA) {
#pragma unroll
        for (int x = 0; x < BN / 4; x++, from += x % 2 ? to.ldc : 7 * to.ldc)
            old[x] = { gpb_load_within(x / 2 * 8 + x % 2, cols, &from->x),
                       gpb_load_within(x / 2 * 8 + x % 2, cols, &from->y) };
    }
#pragma unroll
    for (int x = 0; x < BN / 4; x++, c += x % 2 ? to.ldc : 7 * to.ldc) {
        const float2 product = make_float2(sum[x / 2 * 4 + x % 2], sum[x / 2 * 4 + x % 2 + 2]);
        gpb_store_within(x / 2 * 8 + x % 2, cols, c,
                         BETA ? gpb_sum(product, gpb_scaled_old(to, old[x])) : product, aligned);
    }
}

/* A sum scaled back by 2^e of its row and of its column. With three slices either reaches over 2^-90..2^30,
   so the larger is applied first. Otherwise a product could leave FP32's range although the other scale
   brings it back. */
template <int SLICES>
static __device__ __forceinline__ float gpb_scale_back(float sum, float row, float column)
{
    return SLICES < 3 ? sum * row * column : sum * fmaxf(row, column) * fminf(row, column);
}

/* Multiplies sums by 2^e of their row (upper and, 8 below, lower) and column, and by alpha. */
template <int BN, int SLICES>
static __device__ __forceinline__ void gpb_scale_strip(float alpha, float upper, float lower,
                                                       const float *across, float (&sum)[BN / 2])
{
#pragma unroll
    for (int x = 0; x < BN / 8; x++) {
        const float2 e = __ldg((const float2 *)(across + 8 * x));
#pragma unroll
        for (int y = 4 * x; y < 4 * x + 4; y++)
            sum[y] = alpha * gpb_scale_back<SLICES>(sum[y], y % 4 < 2 ? upper : lower, y % 2 ? e.y : e.x);
    }
}

/* The same where the row 8 below has the imaginary parts. */
template <int BN, int SLICES>
static __device__ __forceinline__ void gpb_scale_strip(float2 alpha, float upper, float lower,
                                                       const float *across, float (&sum)[BN / 2])
{
#pragma unroll
    for (int x = 0; x < BN / 8; x++) {
        const float2 e = __ldg((const float2 *)(across + 8 * x));
#pragma unroll
        for (int y = 4 * x; y < 4 * x + 2; y++) {
            const float column = y % 2 ? e.y : e.x;
            const float2 product =
                gpb_product(alpha, make_float2(gpb_scale_back<SLICES>(sum[y], upper, column),
                                               gpb_scale_back<SLICES>(sum[y + 2], lower, column)));
            sum[y] = product.x;
            sum[y + 2] = product.y;
        }
    }
}

/* The same where the diagonal crosses the tile, from row i and column j on. */
template <int BN>
static __device__ __forceinline__ void gpb_store_row_crossed(gpb_target<float> to, int64_t i, int64_t j,
                                                             const float (&sum)[BN / 2])
{
    to.alpha = 1;                          /* sums have theirs already */
    auto place = [&](int x) __attribute__((always_inline)) {
        return gpb_place{ 0, x / 4 * 8 + x % 4 };
    };
    gpb_store_crossed<BN / 2>(to, i, j, place, [&](int x) __attribute__((always_inline)) { return sum[x]; });
}
template <int BN>
static __device__ __forceinline__ void gpb_store_row_crossed(gpb_target<float2> to, int64_t i, int64_t j,
                                                             const float (&sum)[BN / 2])
{
    to.m /= 2;                             /* of the real product (sliced.h) */
    to.raw = true;
    auto place = [&](int x) __attribute__((always_inline)) {
        return gpb_place{ 0, x / 2 * 8 + x % 2 };
    };
    gpb_store_crossed<BN / 4>(to, i, j, place, [&](int x) __attribute__((always_inline)) {
        return make_float2(sum[x / 2 * 4 + x % 2], sum[x / 2 * 4 + x % 2 + 2]);
    });
}

/* Stores the strip of member l that begins at row first + row and column j0, by one warp. C is of type T; the
   strip's tile begins at row `first` and has BM rows of the real product. */
template <class T, int BM, int BN, int SLICES>
static __device__ __forceinline__ void gpb_store_strip(const gpb_gemm_args &g, unsigned l, int64_t first,
                                                       int row, int64_t j0, float (&sum)[BN / 2])
{
    const int64_t i0 = first + row;
    const gpb_tile<T> t = { g, l, 0, 0, 0, NULL, NULL };
    const gpb_target<T> to = gpb_target_of(t);
    const float *up = (const float *)((const char *)g.a + 4 * (int64_t)l * g.stride_a
                                      + gpb_sliced_scales(g.m, g.k, SLICES));
    const float *across = (const float *)((const char *)g.b + 4 * (int64_t)l * g.stride_b
                                          + gpb_sliced_scales(g.n, g.k, SLICES));
    const int q = threadIdx.x % 4;
    up += i0 + threadIdx.x % 32 / 4;
    across += j0 + 2 * q;
    const float upper = __ldg(up), lower = __ldg(up + 8);
    gpb_scale_strip<BN, SLICES>(to.alpha, upper, lower, across, sum);
    if (!GPB_IS_COMPLEX<T>) gpb_one_row(sum);
    gpb_pin(sum);
    const int64_t i = GPB_IS_COMPLEX<T> ? gpb_sliced_complex_row(i0 + threadIdx.x % 32 / 4)
                                        : i0 + threadIdx.x % 32 / 4 + q % 2 * 8;
    const int64_t j = j0 + (GPB_IS_COMPLEX<T> ? 2 * q : q / 2 * 4);
    const int cols = i < to.m / GPB_REALS<T> ? (int)min(to.n - j, (int64_t)BN) : 0;
    T *c = to.c + i + j * to.ldc;
    if (to.is_crossed(first / GPB_REALS<T>, j0, BM / GPB_REALS<T>, BN))
        gpb_store_row_crossed<BN>(to, i, j, sum);
    else if (to.beta == T()) gpb_store_row<BN, false>(to, c, cols, sum);
    else gpb_store_row<BN, true>(to, c, cols, sum);
}

#endif
