/* SPDX-License-Identifier: MIT */
/* Step 4. In step 3 each multiplication needs two reads of shared memory. Here a thread has four results, one
   in each quarter of a tile twice as wide and high. Two elements of A and two of B give four multiplications,
   so each needs one read. */
#ifndef GPB_LADDER_04_FOUR_RESULTS_CUH
#define GPB_LADDER_04_FOUR_RESULTS_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_four_results(const gpb_tile<float> &t)
{
    constexpr int HM = BM / 2, HN = BN / 2, LDA = BM + 1, LDB = BK + 1;
    static_assert(THREADS == HM * HN, "four results a thread");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % HM, j = threadIdx.x / HM;
    float acc[2][2] = {};
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++)
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int r = 0; r < 2; r++)
                    acc[s][r] += as[i + r * HM + q * LDA] * bs[q + (j + s * HN) * LDB];
        __syncthreads();
    }
    const gpb_target<float> to = gpb_target_of(t);
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            gpb_store(to, t.i0 + i + r * HM, t.j0 + j + s * HN, acc[s][r]);
}

#endif
