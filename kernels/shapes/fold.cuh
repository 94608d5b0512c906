/* SPDX-License-Identifier: MIT */
/* Adding up the parts of a tile without another launch: the block that finishes a tile's last part does it, in the order of the
   parts, whoever it is: the same bits every time. counters[] must be 0 before the launch, and is again after it; no part may be
   empty. */
#ifndef GPB_SHAPES_FOLD_CUH
#define GPB_SHAPES_FOLD_CUH

#include "kernels/epilogue.cuh"

template <int BM, int BN, int THREADS> static __device__ __forceinline__ void gpb_fold_tile(const gpb_tile &t, unsigned l, unsigned splits)
{
    const gpb_gemm_args &g = t.g;
    const int64_t size = g.m * g.n;
    float *c = g.items ? (float *)g.items[l].c : (float *)g.c + l * g.stride_c;
    const gpb_target to = { gpb_global(c), g.m, g.n, g.ldc, (float)g.alpha, (float)g.beta, false };
    for (int x = threadIdx.x; x < BM * BN; x += THREADS) {
        const int64_t i = t.i0 + x % BM, j = t.j0 + x / BM;
        if (i >= to.m || j >= to.n) continue;
        const float *part = g.partials + (int64_t)l * splits * size + i + j * g.m;
        float sum = 0;
#pragma unroll 8
        for (unsigned s = 0; s < splits; s++, part += size)
            sum += __ldcg(part);
        gpb_store(to, i, j, sum);
    }
}

/* After the block has stored its part. */
template <int BM, int BN, int THREADS> static __device__ __forceinline__ void gpb_fold(const gpb_tile &t)
{
    const unsigned splits = gpb_splits_of(t.g), l = t.z / splits;
    if (splits == 1 || !t.g.counters) return;
    __shared__ bool last;
    uint32_t *counter = t.g.counters + (uint64_t)l * gridDim.x + gpb_block();
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(counter, 1) == splits - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    gpb_fold_tile<BM, BN, THREADS>(t, l, splits);
    if (threadIdx.x == 0)
        *counter = 0;
}

#endif
