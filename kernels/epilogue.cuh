/* SPDX-License-Identifier: MIT */
/* C = alpha acc + beta C, each product and the sum rounded once; beta == 0 never reads C; nothing outside m x n is touched. */
#ifndef GPB_EPILOGUE_CUH
#define GPB_EPILOGUE_CUH

#include "kernels/tile.cuh"

static __device__ __forceinline__ float gpb_blend(const gpb_target &to, float acc, float old)
{
    float product = __fmul_rn(to.alpha, acc);
    return to.beta == 0 ? product : __fadd_rn(product, __fmul_rn(to.beta, old));
}

static __device__ __forceinline__ float4 gpb_blend4(const gpb_target &to, float4 acc, float4 old)
{
    return make_float4(gpb_blend(to, acc.x, old.x), gpb_blend(to, acc.y, old.y), gpb_blend(to, acc.z, old.z), gpb_blend(to, acc.w, old.w));
}

/* One result, for C(i,j). */
static __device__ __forceinline__ void gpb_store(const gpb_target &to, int64_t i, int64_t j, float acc)
{
    if (i < to.m && j < to.n) {
        float *c = to.c + i + j * to.ldc;
        *c = gpb_blend(to, acc, to.beta == 0 ? 0 : *c);
    }
}

/* What c[0..3] of one column hold, of which the first `rows` (or none, or all) are within C; not read where beta is 0. */
static __device__ __forceinline__ float4 gpb_old4(const gpb_target &to, const float *c, int rows)
{
    if (to.beta == 0 || rows <= 0) return make_float4(0, 0, 0, 0);
    if (to.aligned && rows >= 4) return *(const float4 *)c;
    return make_float4(c[0], rows > 1 ? c[1] : 0, rows > 2 ? c[2] : 0, rows > 3 ? c[3] : 0);
}

/* Four results, for those. */
static __device__ __forceinline__ void gpb_store4(const gpb_target &to, float *c, int rows, float4 acc, float4 old)
{
    const float4 all = gpb_blend4(to, acc, old);
    if (to.aligned && rows >= 4) {
        __stwb((float4 *)c, all);          /* an assignment became four stores of 4 bytes, in half of all places */
        return;
    }
    const float each[4] = { all.x, all.y, all.z, all.w };
#pragma unroll
    for (int r = 0; r < 4; r++)
        if (r < rows) c[r] = each[r];
}
static __device__ __forceinline__ void gpb_store4(const gpb_target &to, float *c, int rows, float4 acc)
{
    gpb_store4(to, c, rows, acc, gpb_old4(to, c, rows));
}

/* A thread's results: acc[s][4x + r] is row i + x*STEP_M + r of the tile, and column j + s/GROUP*STEP_N + s%GROUP. */
template <int BM, int BN, int STEP_M, int STEP_N, int GROUP, int TM, int TN>
static __device__ __forceinline__ void gpb_store_fragments(const gpb_tile &t, int i, int j, const float (&acc)[TN][TM])
{
    const gpb_target to = gpb_target_of(t);
    const gpb_corner at = gpb_corner_of<BM, BN>(t.g);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM) - i, cols = (int)min(to.n - at.j0, (int64_t)BN) - j;
    float *c = to.c + at.i0 + i + (at.j0 + j) * to.ldc;
#pragma unroll
    for (int s = 0; s < TN; s++) {
        const int at = s / GROUP * STEP_N + s % GROUP;
        if (at < cols)
#pragma unroll
            for (int x = 0; x < TM / 4; x++)
                gpb_store4(to, c + x * STEP_M, rows - x * STEP_M,
                           make_float4(acc[s][4 * x], acc[s][4 * x + 1], acc[s][4 * x + 2], acc[s][4 * x + 3]));
        c += (s % GROUP == GROUP - 1 ? STEP_N - GROUP + 1 : 1) * to.ldc;
    }
}

#endif
