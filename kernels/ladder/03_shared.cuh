/* SPDX-License-Identifier: MIT */
/* Step 3. The block copies a k tile of A and of B, BK deep, to shared memory, where all its threads read it.
   So each element is read from global memory once a block instead of 32 times. Loads are coalesced in
   whichever order an operand lies. Beyond the edges shared memory holds zeros. They add 0 * 0 to true
   results, and otherwise affect only results that are never stored. */
#ifndef GPB_LADDER_03_SHARED_CUH
#define GPB_LADDER_03_SHARED_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_shared(const gpb_tile<float> &t)
{
    static_assert(THREADS == BM * BN, "one result a thread");
    constexpr int LDA = BM + 1, LDB = BK + 1;
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % BM, j = threadIdx.x / BM;
    float acc = 0;
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++)
            acc += as[i + q * LDA] * bs[q + j * LDB];
        __syncthreads();
    }
    gpb_store(gpb_target_of(t), t.i0 + i, t.j0 + j, acc);
}

#endif
