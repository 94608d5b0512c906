/* SPDX-License-Identifier: MIT */
/* Step 17. All of the above together: warp tiling, the two buffers of step 13, and fragments that are double
   buffered, too. The reads for the next q are in flight while this one is multiplied, also across the barrier
   between two tiles. The warps' sub-tiles are interleaved: the warps lie side by side over a part of the tile
   and step over it together, so that a thread's offsets are constants of the instructions. */
#ifndef GPB_LADDER_17_WARP_STRIDED_CUH
#define GPB_LADDER_17_WARP_STRIDED_CUH

#include "kernels/ladder/16_warp_tile.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_warp_strided(const gpb_tile<float> &t)
{
    constexpr int X = 2, Y = THREADS / 32 / X, STEP_M = X * GPB_SUB_M, STEP_N = Y * GPB_SUB_N,
                  COUNT_M = BM / STEP_M, COUNT_N = BN / STEP_N;
    static_assert(X * Y * 32 == THREADS && COUNT_M * STEP_M == BM && COUNT_N * STEP_N == BN,
                  "warps must share the tile evenly");
    static_assert(STAGES == 2 && BK % 2 == 0, "two buffers, two sets of fragments");
    __shared__ __align__(16) float as[2][BK * BM], bs[2][gpb_skewed<BN>(BK)];
    const int warp = threadIdx.x / 32;
    int i, j, now = 0;
    gpb_lane_place(i, j);
    i += warp % X * GPB_SUB_M;
    j += warp / X * GPB_SUB_N;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[4 * COUNT_N][4 * COUNT_M] = {}, a[2][4 * COUNT_M], b[2][4 * COUNT_N];
    ca.fetch(pa, t.g.csa);
    cb.fetch(pb, t.g.csb);
    ca.template put<BM>(as[0]);
    cb.template put_transposed<gpb_skewed<BN>>(bs[0]);
    __syncthreads();
    gpb_fragment<COUNT_M, STEP_M>(a[0], as[0] + i);
    gpb_fragment<COUNT_N, STEP_N>(b[0], bs[0] + j);
    for (unsigned left = gpb_k_tiles<BK>(t) - 1;; left--) {
        if (left) {
            ca.fetch(pa += BK * t.g.csa, t.g.csa);
            cb.fetch(pb += BK, t.g.csb);
        }
#pragma unroll
        for (int q = 0; q < BK; q++) {
            const int next = (q + 1) % BK;
            if (next == 0 && left) {
                now ^= 1;
                ca.template put<BM>(as[now]);
                cb.template put_transposed<gpb_skewed<BN>>(bs[now]);
                __syncthreads();
            }
            gpb_fragment<COUNT_M, STEP_M>(a[next % 2], as[now] + next * BM + i);
            gpb_fragment<COUNT_N, STEP_N>(b[next % 2], bs[now] + gpb_skewed<BN>(next) + j);
            gpb_outer(acc, a[q % 2], b[q % 2]);
        }
        if (!left)
            break;
    }
    gpb_store_fragments<BM, BN, STEP_M, STEP_N, 4>(t, i, j, acc);
}

#endif
