/* SPDX-License-Identifier: MIT */
/* Step 13. Shared memory holds two tiles of each operand. While the block multiplies one, the next comes from
   global memory to registers, and is put into the other buffer afterwards. So the multiplications hide
   memory's latency. One barrier a tile suffices, because the buffer written was last read before the previous
   barrier. */
#ifndef GPB_LADDER_13_DOUBLE_BUFFER_CUH
#define GPB_LADDER_13_DOUBLE_BUFFER_CUH

#include "kernels/ladder/12_conflict_free.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_double_buffer(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN && TM % 4 == 0 && TN % 4 == 0,
                  "threads must share the tile evenly");
    static_assert(STAGES == 2, "one buffer to read, one to write");
    __shared__ __align__(16) float as[2][BK * BM], bs[2][gpb_skewed<BN>(BK)];
    const int i = threadIdx.x % X * 4, j = threadIdx.x / X * 4;
    gpb_register_tile<float, BM, BK, THREADS> ca;
    gpb_register_tile<float, BK, BN, THREADS> cb;
    const float *pa = t.a + t.i0 + ca.row() + ca.col() * t.g.csa,
                *pb = t.b + t.j0 * t.g.csb + cb.row() + cb.col() * t.g.csb;
    float acc[TN][TM] = {};
    int now = 0;
    ca.fetch(pa, t.g.csa);
    cb.fetch(pb, t.g.csb);
    ca.template put<BM>(as[0]);
    cb.template put_transposed<gpb_skewed<BN>>(bs[0]);
    __syncthreads();
    for (unsigned left = gpb_k_tiles<BK>(t) - 1;; left--) {
        if (left) {
            ca.fetch(pa += BK * t.g.csa, t.g.csa);
            cb.fetch(pb += BK, t.g.csb);
        }
        gpb_multiply_fragments<BM, BN, BK>(acc, as[now], bs[now], i, j);
        if (!left)
            break;
        now ^= 1;
        ca.template put<BM>(as[now]);
        cb.template put_transposed<gpb_skewed<BN>>(bs[now]);
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, BM * 4 / TM, BN * 4 / TN, 4>(t, i, j, acc);
}

#endif
