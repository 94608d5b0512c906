/* SPDX-License-Identifier: MIT */
/* Step 5. Step 4 without bounds checks. gpb_spack has copied A and B to workspaces that are padded with zeros
   to whole tiles. C is such a workspace, too, and gpb_sunpack copies the true results to the caller's C and
   adds beta C there. The copies are of order n^2, the checks were of order n^3. */
#ifndef GPB_LADDER_05_PADDED_CUH
#define GPB_LADDER_05_PADDED_CUH

#include "kernels/tile.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_padded(const gpb_tile<float> &t)
{
    constexpr int HM = BM / 2, HN = BN / 2, LDA = BM + 1, LDB = BK + 1;
    static_assert(THREADS == HM * HN && BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
                  "four results a thread, even shares of the loads");
    __shared__ float as[BK * LDA], bs[BN * LDB];
    const int i = threadIdx.x % HM, j = threadIdx.x / HM;
    const float *a = t.a + t.i0, *b = t.b + t.j0 * t.g.csb;
    float acc[2][2] = {};
    for (int64_t p = 0; p < t.k; p += BK) {
#pragma unroll
        for (int x = threadIdx.x; x < BM * BK; x += THREADS)
            as[x % BM + x / BM * LDA] = a[x % BM + (p + x / BM) * t.g.csa];
#pragma unroll
        for (int x = threadIdx.x; x < BK * BN; x += THREADS)
            bs[x % BK + x / BK * LDB] = b[p + x % BK + x / BK * t.g.csb];
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
            to.c[t.i0 + i + r * HM + (t.j0 + j + s * HN) * to.ldc] = to.alpha * acc[s][r];
}

#endif
