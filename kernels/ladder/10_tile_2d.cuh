/* SPDX-License-Identifier: MIT */
/* Step 10. A thread has 8 x 8 neighbouring results, on a tile of 128 x 128: 16 reads of shared memory for 64
   multiplications, where step 9 had 9 for 8. From here on the multiplications are the limit, not the
   reads. */
#ifndef GPB_LADDER_10_TILE_2D_CUH
#define GPB_LADDER_10_TILE_2D_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tile_2d(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y, LDA = BM + 1, LDB = BK + 1;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN, "threads must share the tile evenly");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % X * TM, j = threadIdx.x / X * TN;
    float acc[TN][TM] = {};
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            float a[TM], b[TN];
#pragma unroll
            for (int r = 0; r < TM; r++)
                a[r] = as[i + r + q * LDA];
#pragma unroll
            for (int s = 0; s < TN; s++)
                b[s] = bs[q + (j + s) * LDB];
#pragma unroll
            for (int s = 0; s < TN; s++)
#pragma unroll
                for (int r = 0; r < TM; r++)
                    acc[s][r] += a[r] * b[s];
        }
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, 4, 4, 4>(t, i, j, acc);
}

#endif
