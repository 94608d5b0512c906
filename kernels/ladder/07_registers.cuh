/* SPDX-License-Identifier: MIT */
/* Step 7. Both operands are cached in registers: for each q a thread reads 4 elements of A and 8 of B and
   multiplies 32 times. Its rows and columns are strided by the thread block's width and height, so that
   neighbouring threads still read and write neighbours. */
#ifndef GPB_LADDER_07_REGISTERS_CUH
#define GPB_LADDER_07_REGISTERS_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_registers(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y, LDA = BM + 1, LDB = BK + 1;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN, "threads must share the tile evenly");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % X, j = threadIdx.x / X;
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
                a[r] = as[i + r * X + q * LDA];
#pragma unroll
            for (int s = 0; s < TN; s++)
                b[s] = bs[q + (j + s * Y) * LDB];
#pragma unroll
            for (int s = 0; s < TN; s++)
#pragma unroll
                for (int r = 0; r < TM; r++)
                    acc[s][r] += a[r] * b[s];
        }
        __syncthreads();
    }
    const gpb_target<float> to = gpb_target_of(t);
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int r = 0; r < TM; r++)
            gpb_store(to, t.i0 + i + r * X, t.j0 + j + s * Y, acc[s][r]);
}

#endif
