/* SPDX-License-Identifier: MIT */
/* gpb_ssplit's relatives for Hopper: a strip's elements stay in registers between the search for its rows' largest and the cutting, so the
   operand is read once. Where one block cannot hold a strip the blocks of a cluster share its k, and tell each other what they found
   through distributed shared memory. */
#ifndef GPB_SPLIT_SLICES_SM90_CUH
#define GPB_SPLIT_SLICES_SM90_CUH

#include "kernels/ptx_sm90.cuh"
#include "kernels/split/slices.cuh"

/* Every block's findings into the survey of every block of the cluster. */
template <int SHARERS> static __device__ __forceinline__ void gpb_confer(gpb_survey &all, const gpb_survey &here)
{
    for (int x = threadIdx.x; x < GPB_SPLIT_STRIP * SHARERS; x += GPB_SPLIT_THREADS) {
        const int row = x % GPB_SPLIT_STRIP, rank = x / GPB_SPLIT_STRIP;
        gpb_cluster_max(gpb_shared(&all.largest[row]), rank, here.largest[row]);
        gpb_cluster_add(gpb_shared(&all.nonzeros[row]), rank, here.nonzeros[row]);
    }
    gpb_cluster_sync();
}

/* OCTETS: that a thread holds; the blocks' turns alternate along k. */
template <int SLICES, int OCTETS, int SHARERS>
static __device__ __forceinline__ void gpb_split_held(const gpb_split_operand &x, int64_t k, uint32_t *notice, unsigned strip, int64_t l)
{
    __shared__ gpb_survey here, all;
    const gpb_strip<SLICES> s(x, k, strip, l);
    const int rank = SHARERS > 1 ? gpb_cluster_rank() : 0, begin = rank * GPB_SPLIT_STEP + s.octet * 8;
    here.clear();
    all.clear();
    if (SHARERS > 1) gpb_cluster_sync();
    else __syncthreads();
    gpb_octet o[OCTETS];
    unsigned largest = 0, nonzeros = 0;
#pragma unroll
    for (int y = 0; y < OCTETS; y++) {
        const int64_t p = begin + y * (SHARERS * GPB_SPLIT_STEP);
        o[y].load(s.src + p * x.cs, x.cs, s.k - p, s.vector);
    }
#pragma unroll
    for (int y = 0; y < OCTETS; y++) gpb_look(o[y], largest, nonzeros);
    atomicMax(&here.largest[s.row], largest);
    atomicAdd(&here.nonzeros[s.row], nonzeros);
    __syncthreads();
    if (SHARERS > 1) gpb_confer<SHARERS>(all, here);
    const gpb_survey &found = SHARERS > 1 ? all : here;
    int level;
    const float scale = gpb_scale(x, s, k, found.largest[s.row], found.nonzeros[s.row], begin == 0, level), t = gpb_tolerance(k);
#pragma unroll
    for (int y = 0; y < OCTETS; y++) {
        const int64_t p = begin + y * (SHARERS * GPB_SPLIT_STEP);
        if (p < s.chunks * GPB_SPLIT_CHUNK) level = max(level, s.cut(o[y], p, scale, t));
    }
    gpb_mark(x, s, k, notice, level);
}

#endif
