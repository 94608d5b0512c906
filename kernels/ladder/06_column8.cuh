/* SPDX-License-Identifier: MIT */
/* Step 6. Back to a small tile, but with few threads that do much work each: eight results of one column in a
   fully unrolled loop. One element of B in a register serves eight multiplications, and an eighth of the
   threads makes the block's barriers cheap. */
#ifndef GPB_LADDER_06_COLUMN8_CUH
#define GPB_LADDER_06_COLUMN8_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_column8(const gpb_tile<float> &t)
{
    constexpr int X = THREADS / BN, R = BM / X, LDA = BM + 1, LDB = BK + 1;
    static_assert(X * BN == THREADS && R * X == BM, "threads must share the tile evenly");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % X, j = threadIdx.x / X;
    float acc[R] = {};
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            const float b = bs[q + j * LDB];
#pragma unroll
            for (int r = 0; r < R; r++)
                acc[r] += as[i + r * X + q * LDA] * b;
        }
        __syncthreads();
    }
    const gpb_target<float> to = gpb_target_of(t);
#pragma unroll
    for (int r = 0; r < R; r++)
        gpb_store(to, t.i0 + i + r * X, t.j0 + j, acc[r]);
}

#endif
