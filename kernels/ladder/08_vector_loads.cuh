/* SPDX-License-Identifier: MIT */
/* Step 8. Step 7 on padded operands with 16 bytes an instruction: from global memory through the read-only
   path (__ldg), and from shared memory for a thread's four rows, which therefore are neighbours now. With a
   quarter of the load instructions more issue slots are left to the multiplications. */
#ifndef GPB_LADDER_08_VECTOR_LOADS_CUH
#define GPB_LADDER_08_VECTOR_LOADS_CUH

#include "kernels/epilogue.cuh"
#include "kernels/tile_load.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_vector_loads(const gpb_tile<float> &t)
{
    constexpr int X = BM / 4, Y = THREADS / X, TN = BN / Y, LDB = BK + 4;
    static_assert(X * Y == THREADS && TN * Y == BN, "threads must share the tile evenly");
    __shared__ __align__(16) float as[BK * BM], bs[BN * LDB];
    const int i = threadIdx.x % X * 4, j = threadIdx.x / X;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[TN][4] = {};
    for (unsigned left = gpb_k_tiles<BK>(t); left; left--, pa += BK * t.g.csa, pb += BK) {
        ca.fetch(pa, t.g.csa);
        cb.fetch(pb, t.g.csb);
        ca.template put<BM>(as);
        cb.template put<LDB>(bs);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            const float4 a = *(const float4 *)(as + i + q * BM);
#pragma unroll
            for (int s = 0; s < TN; s++) {
                const float b = bs[q + (j + s * Y) * LDB];
                acc[s][0] += a.x * b;
                acc[s][1] += a.y * b;
                acc[s][2] += a.z * b;
                acc[s][3] += a.w * b;
            }
        }
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, 0, Y, 1>(t, i, j, acc);
}

#endif
