/* SPDX-License-Identifier: MIT */
/* Where the sums of a SPLIT kernel go: scaled back by the powers of two of their row and column, then alpha, beta, the edges of C. */
#ifndef GPB_SPLIT_STORE_CUH
#define GPB_SPLIT_STORE_CUH

#include "kernels/split.h"
#include "kernels/tile.cuh"

/* C of a thread's places in a 16 x BN strip, which mma and wgmma lay out alike: its first row and 8 below, pairs of columns 8 apart.
   FULL: none of them is outside C. A store covers eight rows by four columns: whole sectors. */
template <int BN, bool FULL, bool BETA>
static __device__ __forceinline__ void gpb_store_pairs(const gpb_target &to, float *c, int rows, int cols, const float (&sum)[BN / 2])
{
#pragma unroll
    for (int x = 0; x < BN / 8; x++, c += 8 * to.ldc)
#pragma unroll
        for (int y = 0; y < 4; y++) {
            float *at = c + (y / 2 ? 8 : 0) + (y % 2 ? to.ldc : 0);
            if (FULL || (y / 2 * 8 < rows && 8 * x + y % 2 < cols)) {
                const float product = __fmul_rn(to.alpha, sum[4 * x + y]);
                *at = BETA ? __fadd_rn(product, __fmul_rn(to.beta, *at)) : product;
            }
        }
}

/* The strip of member l that begins at row i0 and column j0, by a warp. full: all of it is within C. */
template <int BN, int SLICES>
static __device__ __forceinline__ void gpb_store_strip(const gpb_gemm_args &g, unsigned l, int64_t i0, int64_t j0, bool full,
                                                       float (&sum)[BN / 2])
{
    const gpb_tile t = { g, l, 0, 0, 0, NULL, NULL };
    const gpb_target to = gpb_target_of(t);
    const float *up = (const float *)((const char *)g.a + 4 * (int64_t)l * g.stride_a + gpb_split_scales(g.m, g.k, SLICES));
    const float *across = (const float *)((const char *)g.b + 4 * (int64_t)l * g.stride_b + gpb_split_scales(g.n, g.k, SLICES));
    const int64_t i = i0 + threadIdx.x % 32 / 4, j = j0 + threadIdx.x % 4 * 2;
    const float upper = __ldg(up + i), lower = __ldg(up + i + 8);
#pragma unroll
    for (int x = 0; x < BN / 8; x++) {
        const float2 e = __ldg((const float2 *)(across + j + 8 * x));
        sum[4 * x] = sum[4 * x] * upper * e.x, sum[4 * x + 1] = sum[4 * x + 1] * upper * e.y;
        sum[4 * x + 2] = sum[4 * x + 2] * lower * e.x, sum[4 * x + 3] = sum[4 * x + 3] * lower * e.y;
    }
    const int rows = (int)min(to.m - i, (int64_t)16), cols = (int)min(to.n - j, (int64_t)BN);
    float *c = to.c + i + j * to.ldc;
    if (to.beta == 0)
        full ? gpb_store_pairs<BN, true, false>(to, c, rows, cols, sum) : gpb_store_pairs<BN, false, false>(to, c, rows, cols, sum);
    else
        full ? gpb_store_pairs<BN, true, true>(to, c, rows, cols, sum) : gpb_store_pairs<BN, false, true>(to, c, rows, cols, sum);
}

#endif
