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

/* A warp has 32 x 64 of the tile, in fragments of 16 x 16. */
constexpr int GPB_TF32_DOWN = 2, GPB_TF32_ACROSS = 4;
constexpr int GPB_TF32_WM = 16 * GPB_TF32_DOWN, GPB_TF32_WN = 16 * GPB_TF32_ACROSS;
using gpb_tf32_sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float>;
using gpb_tf32_sums = gpb_tf32_sum[GPB_TF32_DOWN][GPB_TF32_ACROSS];

/* Loads fragments, `distance` floats apart, and rounds them to TF32. */
template <int COUNT, class FRAGMENT>
static __device__ __forceinline__ void gpb_tf32_load(FRAGMENT (&to)[COUNT], const float *from, int distance,
                                                     int ld)
{
#pragma unroll
    for (int x = 0; x < COUNT; x++) {
        nvcuda::wmma::load_matrix_sync(to[x], from + x * distance, ld);
#pragma unroll
        for (int e = 0; e < to[x].num_elements; e++)
            to[x].x[e] = nvcuda::wmma::__float_to_tf32(to[x].x[e]);
    }
}

/* acc += the product of a stage: as[i + q*LDA], bs[q + j*LDB]. */
template <int BK, int LDA, int LDB>
static __device__ __forceinline__ void gpb_tf32_multiply(gpb_tf32_sums &acc, const float *as, const float *bs)
{
    using namespace nvcuda;
#pragma unroll
    for (int q = 0; q < BK; q += 8) {
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major> a[GPB_TF32_DOWN];
        wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b[GPB_TF32_ACROSS];
        gpb_tf32_load(a, as + q * LDA, 16, LDA);
        gpb_tf32_load(b, bs + q, 16 * LDB, LDB);
#pragma unroll
        for (int x = 0; x < GPB_TF32_DOWN; x++)
#pragma unroll
            for (int y = 0; y < GPB_TF32_ACROSS; y++)
                wmma::mma_sync(acc[x][y], a[x], b[y], acc[x][y]);
    }
}

/* Stores the sums of the warp whose first row and column of the tile are i and j, by way of `patch`. */
template <int BM, int BN, int LDP>
static __device__ __forceinline__ void gpb_tf32_store(const gpb_tile<float> &t, const gpb_tf32_sums &acc,
                                                      float *patch, int i, int j)
{
    const int lane = threadIdx.x % 32;
    const gpb_target<float> to = gpb_target_of(t);
    const gpb_origin at = gpb_origin_of<BM, BN>(t.g);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM), cols = (int)min(to.n - at.j0, (int64_t)BN);
    float *origin = to.c + at.i0 + at.j0 * to.ldc;
#pragma unroll
    for (int x = 0; x < GPB_TF32_DOWN; x++)
#pragma unroll
        for (int y = 0; y < GPB_TF32_ACROSS; y++) {
            nvcuda::wmma::store_matrix_sync(patch, acc[x][y], LDP, nvcuda::wmma::mem_col_major);
            __syncwarp();
            for (int s = lane / 4; s < 16; s += 8) {
                const int row = i + x * 16 + lane % 4 * 4, col = j + y * 16 + s;
                if (col < cols)
                    gpb_store_vector(to, origin + row + col * to.ldc, rows - row,
                                     *(const float4 *)(patch + s * LDP + lane % 4 * 4));
            }
            __syncwarp();
        }
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32(const gpb_tile<float> &t)
{
    constexpr int LDA = BM + 8, LDB = BK + 4, LDP = 20;  /* the padding avoids bank conflicts */
    constexpr int STAGE = BK * LDA + BN * LDB, PATCH = 16 * LDP, WARPS_M = BM / GPB_TF32_WM;
    static_assert(WARPS_M * (BN / GPB_TF32_WN) * 32 == THREADS, "each warp has its part");
    static_assert(STAGES >= 2 && SMEM == STAGES * STAGE * 4 && SMEM >= THREADS / 32 * PATCH * 4,
                  "smem of the row must be that of the tile");
    extern __shared__ __align__(128) float memory[];
    const int warp = threadIdx.x / 32, i = warp % WARPS_M * GPB_TF32_WM, j = warp / WARPS_M * GPB_TF32_WN;
    const float *pa = t.a + t.i0, *pb = t.b + t.j0 * t.g.csb;
    gpb_tf32_sums acc;
#pragma unroll
    for (int x = 0; x < GPB_TF32_DOWN; x++)
#pragma unroll
        for (int y = 0; y < GPB_TF32_ACROSS; y++)
            nvcuda::wmma::fill_fragment(acc[x][y], 0.0f);

    unsigned left = gpb_k_tiles<BK>(t);
    int now = 0;  /* the stage to multiply */
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
        gpb_tf32_multiply<BK, LDA, LDB>(acc, as, bs);
        now = now + 1 < STAGES ? now + 1 : 0;
    }
    __syncthreads();  /* the stages become patches */
    gpb_tf32_store<BM, BN, LDP>(t, acc, memory + warp * PATCH, i, j);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32_2stage(const gpb_tile<float> &t)
{
    static_assert(STAGES == 2, "one tile multiplied, one on its way");
    gpb_tf32<BM, BN, BK, STAGES, THREADS, SMEM>(t);
}

#endif
