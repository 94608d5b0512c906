/* SPDX-License-Identifier: MIT */
/* Step 9. The other ladder of the literature starts again from step 3. A thread has eight neighbouring
   columns of one row, and k tiles are only 8 deep. An element of A is read once for eight multiplications,
   and a warp's elements of B are the same for all its threads. */
#ifndef GPB_LADDER_09_TILE_1D_CUH
#define GPB_LADDER_09_TILE_1D_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tile_1d(const gpb_tile<float> &t)
{
    constexpr int TN = BM * BN / THREADS, LDA = BM + 1, LDB = BK + 1;
    static_assert(THREADS % BM == 0 && THREADS / BM * TN == BN, "threads must share the tile evenly");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % BM, j = threadIdx.x / BM * TN;
    float acc[TN] = {};
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            const float a = as[i + q * LDA];
#pragma unroll
            for (int s = 0; s < TN; s++)
                acc[s] += a * bs[q + (j + s) * LDB];
        }
        __syncthreads();
    }
    const gpb_target<float> to = gpb_target_of(t);
#pragma unroll
    for (int s = 0; s < TN; s++)
        gpb_store(to, t.i0 + i, t.j0 + j + s, acc[s]);
}

#endif
