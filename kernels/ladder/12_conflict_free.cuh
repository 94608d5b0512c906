/* SPDX-License-Identifier: MIT */
/* Step 12. In step 11 neighbouring threads read 16 bytes at distances of 32, so two of them meet in each bank
   of shared memory. Now a thread's 8 rows are two groups of 4, half a tile apart, so that neighbours read
   neighbouring 16 bytes. The same holds for its columns. The rows of the transposed tile are skewed, so that
   storing the parts of its columns causes no bank conflicts either. */
#ifndef GPB_LADDER_12_CONFLICT_FREE_CUH
#define GPB_LADDER_12_CONFLICT_FREE_CUH

#include "kernels/ladder/11_float4.cuh"

/* acc += the product of a BM x BK and a BK x BN tile in shared memory. i and j are the thread's first row and
   column. */
template <int BM, int BN, int BK, int TM, int TN>
static __device__ __forceinline__ void gpb_multiply_fragments(float (&acc)[TN][TM], const float *as,
                                                              const float *bs, int i, int j)
{
    float a[TM], b[TN];
#pragma unroll
    for (int q = 0; q < BK; q++) {
        gpb_fragment<TM / 4, BM * 4 / TM>(a, as + q * BM + i);
        gpb_fragment<TN / 4, BN * 4 / TN>(b, bs + gpb_skewed<BN>(q) + j);
        gpb_outer(acc, a, b);
    }
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_conflict_free(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN && TM % 4 == 0 && TN % 4 == 0,
                  "threads must share the tile evenly");
    __shared__ __align__(16) float as[BK * BM], bs[gpb_skewed<BN>(BK)];
    const int i = threadIdx.x % X * 4, j = threadIdx.x / X * 4;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[TN][TM] = {};
    for (unsigned left = gpb_k_tiles<BK>(t); left; left--, pa += BK * t.g.csa, pb += BK) {
        ca.fetch(pa, t.g.csa);
        cb.fetch(pb, t.g.csb);
        ca.template put<BM>(as);
        cb.template put_transposed<gpb_skewed<BN>>(bs);
        __syncthreads();
        gpb_multiply_fragments<BM, BN, BK>(acc, as, bs, i, j);
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, BM * 4 / TM, BN * 4 / TN, 4>(t, i, j, acc);
}

#endif
