/* SPDX-License-Identifier: MIT */
/* gpb_sreduce: the parts of a product whose k was cut, added up, then alpha and beta. Parts lie densely, so outputs are walked as one array. With
   few parts a thread takes one output; with many, eight groups of threads take a stretch of the parts each, and their sums are added by pairs. The
   order depends on the number of parts alone: the same bits every time. */
#ifndef GPB_REDUCE_CUH
#define GPB_REDUCE_CUH

#include "kernels/epilogue.cuh"

constexpr int GPB_REDUCE_GROUPS = GPB_REDUCE_THREADS / GPB_REDUCE_FEW;
static_assert(GPB_REDUCE_GROUPS == 8, "added up by pairs");

/* The parts from `from` to `to`, every fourth to a sum of its own: each is the sum of many products by now, and 16 of them added up one after the
   other were off by as much as those. The loads of several are under way at once. */
static __device__ __forceinline__ float gpb_sum_parts(const float *part, int64_t size, unsigned from, unsigned to)
{
    float sum[4] = {};
    const unsigned count = to - from;
    part += from * size;
#pragma unroll 2
    for (unsigned y = 0; y < count / 4; y++, part += 4 * size)
#pragma unroll
        for (int x = 0; x < 4; x++) sum[x] += __ldcg(part + x * size);
#pragma unroll
    for (unsigned x = 0; x < 3; x++)
        if (x < count % 4) sum[x] += __ldcg(part + x * size);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

extern "C" __global__ void __launch_bounds__(GPB_REDUCE_THREADS) GPB_REDUCE_SYMBOL(s)(const __grid_constant__ gpb_reduce_args g)
{
    __shared__ float sums[GPB_REDUCE_GROUPS][GPB_REDUCE_FEW];
    const bool many = GPB_REDUCE_MANY(g.splits);
    const int group = many ? threadIdx.x / GPB_REDUCE_FEW : 0, x = many ? threadIdx.x % GPB_REDUCE_FEW : threadIdx.x;
    const unsigned splits = (unsigned)g.splits, groups = many ? GPB_REDUCE_GROUPS : 1;
    const int64_t size = g.m * g.n, at = (int64_t)blockIdx.x * GPB_REDUCE_OUTPUTS(g.splits) + x;
    gpb_grid_wait();
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const float *part = g.partials + l * g.splits * size + at;
        float sum = at < size ? gpb_sum_parts(part, size, splits * group / groups, splits * (group + 1) / groups) : 0;
        if (many) {
            sums[group][x] = sum;
            __syncthreads();
            sum = ((sums[0][x] + sums[1][x]) + (sums[2][x] + sums[3][x])) + ((sums[4][x] + sums[5][x]) + (sums[6][x] + sums[7][x]));
            __syncthreads();
        }
        if (at < size && group == 0) {
            float *c = g.items ? (float *)g.items[l].c : (float *)g.c + l * g.stride_c;
            const gpb_target to = { c, g.m, g.n, g.ldc, (float)g.alpha, (float)g.beta, false };
            gpb_store(to, at % g.m, at / g.m, sum);
        }
    }
}

#endif
