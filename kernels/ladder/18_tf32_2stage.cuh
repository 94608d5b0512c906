/* SPDX-License-Identifier: MIT */
/* Step 18. Tensor cores: operands are rounded to TF32 (11 significant bits), and products of 16 x 16 x 8 are
   added up in FP32. Copies by cp.async, as in step 15, run STAGES - 1 tiles ahead. Each of 8 warps has 32 x
   64 of the tile. The layout of fragments is not documented, so results go to the epilogue through a patch of
   shared memory. Rounding can turn the largest floats into Inf, so TF32 is used only if the user asks for
   it. */
#ifndef GPB_LADDER_18_TF32_2STAGE_CUH
#define GPB_LADDER_18_TF32_2STAGE_CUH

#include <mma.h>
#include "kernels/ladder/15_cp_async.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32(const gpb_tile<float> &t)
{
    using namespace nvcuda;
    constexpr int WM = 32, WN = 64, COUNT_M = WM / 16, COUNT_N = WN / 16;
    constexpr int LDA = BM + 8, LDB = BK + 4, LDP = 20;  /* the padding avoids bank conflicts */
    constexpr int STAGE = BK * LDA + BN * LDB, PATCH = 16 * LDP;
    static_assert(BM / WM * (BN / WN) * 32 == THREADS, "each warp has its part");
    static_assert(STAGES >= 2 && SMEM == STAGES * STAGE * 4 && SMEM >= THREADS / 32 * PATCH * 4,
                  "smem of the row must be that of the tile");
    extern __shared__ __align__(128) float memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = warp % (BM / WM) * WM,
              j = warp / (BM / WM) * WN;
    const float *pa = t.a + t.i0, *pb = t.b + t.j0 * t.g.csb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc[COUNT_M][COUNT_N];
#pragma unroll
    for (int x = 0; x < COUNT_M; x++)
#pragma unroll
        for (int y = 0; y < COUNT_N; y++)
            wmma::fill_fragment(acc[x][y], 0.0f);

    unsigned left = gpb_k_tiles<BK>(t);
    int now = 0;                                                           /* the stage to multiply */
    auto copy = [&](int stage, bool there) {
        if (there) {
            gpb_copy_async<BM, BK, LDA, THREADS>(memory + stage * STAGE, pa, t.g.csa);
            gpb_copy_async<BK, BN, LDB, THREADS>(memory + stage * STAGE + BK * LDA, pb, t.g.csb);
            pa += BK * t.g.csa;
            pb += BK;
        }
        gpb_cp_async_commit();  /* an empty group at the end keeps the count */
    };
    for (int s = 0; s < STAGES - 1; s++)
        copy(s, s < left);
    for (; left; left--) {
        gpb_cp_async_wait<STAGES - 2>();
        __syncthreads();  /* this tile is complete, and no thread reads the one before */
        copy(now ? now - 1 : STAGES - 1, left >= STAGES);
        const float *as = memory + now * STAGE + i, *bs = memory + now * STAGE + BK * LDA + j * LDB;
#pragma unroll
        for (int q = 0; q < BK; q += 8) {
            wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major> a[COUNT_M];
            wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b[COUNT_N];
#pragma unroll
            for (int x = 0; x < COUNT_M; x++) {
                wmma::load_matrix_sync(a[x], as + q * LDA + x * 16, LDA);
#pragma unroll
                for (int e = 0; e < a[x].num_elements; e++)
                    a[x].x[e] = wmma::__float_to_tf32(a[x].x[e]);
            }
#pragma unroll
            for (int y = 0; y < COUNT_N; y++) {
                wmma::load_matrix_sync(b[y], bs + q + y * 16 * LDB, LDB);
#pragma unroll
                for (int e = 0; e < b[y].num_elements; e++)
                    b[y].x[e] = wmma::__float_to_tf32(b[y].x[e]);
            }
#pragma unroll
            for (int x = 0; x < COUNT_M; x++)
#pragma unroll
                for (int y = 0; y < COUNT_N; y++)
                    wmma::mma_sync(acc[x][y], a[x], b[y], acc[x][y]);
        }
        now = now + 1 < STAGES ? now + 1 : 0;
    }
    __syncthreads();                                                       /* the stages become patches */
    float *patch = memory + warp * PATCH;
    const gpb_target<float> to = gpb_target_of(t);
    const gpb_origin at = gpb_origin_of<BM, BN>(t.g);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM), cols = (int)min(to.n - at.j0, (int64_t)BN);
    float *origin = to.c + at.i0 + at.j0 * to.ldc;
    const bool crossed = to.is_crossed(at.i0, at.j0, BM, BN);
#pragma unroll
    for (int x = 0; x < COUNT_M; x++)
#pragma unroll
        for (int y = 0; y < COUNT_N; y++) {
            wmma::store_matrix_sync(patch, acc[x][y], LDP, wmma::mem_col_major);
            __syncwarp();
            for (int s = lane / 4; s < 16; s += 8) {
                const int row = i + x * 16 + lane % 4 * 4, col = j + y * 16 + s;
                if (crossed)
                    for (int r = 0; r < 4; r++)
                        gpb_store(to, at.i0 + row + r, at.j0 + col, patch[s * LDP + lane % 4 * 4 + r]);
                else if (col < cols)
                    gpb_store_vector(to, origin + row + col * to.ldc, rows - row,
                                     *(const float4 *)(patch + s * LDP + lane % 4 * 4));
            }
            __syncwarp();
        }
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32_2stage(const gpb_tile<float> &t)
{
    static_assert(STAGES == 2, "one tile multiplied, one on its way");
    gpb_tf32<BM, BN, BK, STAGES, THREADS, SMEM>(t);
}

#endif
