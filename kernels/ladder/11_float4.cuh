/* SPDX-License-Identifier: MIT */
/* Step 11. Step 10 on padded operands with 16-byte accesses everywhere. A thread's 8 rows are contiguous in
   op(A)'s tile already. op(B)'s tile is contiguous along k in memory and is transposed on its way into shared
   memory, so that a thread's 8 columns are contiguous, too. */
#ifndef GPB_LADDER_11_FLOAT4_CUH
#define GPB_LADDER_11_FLOAT4_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

/* A thread's fragment out of shared memory: to[4x .. 4x+3] = from[x * STEP ..], for each x. */
template <int COUNT, int STEP>
static __device__ __forceinline__ void gpb_fragment(float (&to)[4 * COUNT], const float *from)
{
#pragma unroll
    for (int x = 0; x < COUNT; x++) {
        const float4 v = *(const float4 *)(from + x * STEP);
        to[4 * x] = v.x;
        to[4 * x + 1] = v.y;
        to[4 * x + 2] = v.z;
        to[4 * x + 3] = v.w;
    }
}

/* acc += a b', the outer product of two fragments. */
template <int TM, int TN>
static __device__ __forceinline__ void gpb_outer(float (&acc)[TN][TM], const float (&a)[TM],
                                                 const float (&b)[TN])
{
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int r = 0; r < TM; r++)
            acc[s][r] += a[r] * b[s];
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_float4(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN && TM % 4 == 0 && TN % 4 == 0,
                  "threads must share the tile evenly");
    __shared__ __align__(16) float as[BK * BM], bs[BK * BN];
    const int i = threadIdx.x % X * TM, j = threadIdx.x / X * TN;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[TN][TM] = {}, a[TM], b[TN];
    for (unsigned left = gpb_k_tiles<BK>(t); left; left--, pa += BK * t.g.csa, pb += BK) {
        ca.fetch(pa, t.g.csa);
        cb.fetch(pb, t.g.csb);
        ca.template put<BM>(as);
        cb.template put_transposed<gpb_plain<BN>>(bs);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            gpb_fragment<TM / 4, 4>(a, as + q * BM + i);
            gpb_fragment<TN / 4, 4>(b, bs + q * BN + j);
            gpb_outer(acc, a, b);
        }
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, 4, 4, 4>(t, i, j, acc);
}

#endif
