/* SPDX-License-Identifier: MIT */
/* Step 16. A level between block and thread: each warp has one connected quarter of the tile, 64 x 64, so its
   32 threads read only 64 + 64 floats of shared memory for each q. The warp computes its quarter in sub-tiles
   of 32 x 16, one after another, each thread 4 x 4 of each. That is 128 results a thread, and 6 reads of 16
   bytes for 128 multiplications. */
#ifndef GPB_LADDER_16_WARP_TILE_CUH
#define GPB_LADDER_16_WARP_TILE_CUH

#include "kernels/ladder/12_conflict_free.cuh"

/* A warp's 32 threads lie 8 x 4 over a sub-tile, each with 4 x 4 of it. Neighbours pair up in rows and
   columns, so each half warp reads whole lines of 128 bytes. */
constexpr int GPB_SUB_M = 32, GPB_SUB_N = 16;
static __device__ __forceinline__ void gpb_lane_place(int &i, int &j)
{
    const int lane = threadIdx.x % 32;
    i = lane / 2 % 8 * 4;
    j = (lane % 2 + lane / 16 * 2) * 4;
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_warp_tile(const gpb_tile<float> &t)
{
    constexpr int WM = 64, WN = 64, TM = WM / GPB_SUB_M * 4, TN = WN / GPB_SUB_N * 4;
    static_assert(BM / WM * (BN / WN) * 32 == THREADS, "each warp has its part");
    __shared__ __align__(16) float as[BK * BM], bs[gpb_skewed<BN>(BK)];
    const int warp = threadIdx.x / 32;
    int i, j;
    gpb_lane_place(i, j);
    i += warp % (BM / WM) * WM;
    j += warp / (BM / WM) * WN;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[TN][TM] = {}, a[TM], b[TN];
    for (unsigned left = gpb_k_tiles<BK>(t); left; left--, pa += BK * t.g.csa, pb += BK) {
        ca.fetch(pa, t.g.csa);
        cb.fetch(pb, t.g.csb);
        ca.template put<BM>(as);
        cb.template put_transposed<gpb_skewed<BN>>(bs);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            gpb_fragment<TM / 4, GPB_SUB_M>(a, as + q * BM + i);
            gpb_fragment<TN / 4, GPB_SUB_N>(b, bs + gpb_skewed<BN>(q) + j);
            gpb_outer(acc, a, b);
        }
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, GPB_SUB_M, GPB_SUB_N, 4>(t, i, j, acc);
}

#endif
