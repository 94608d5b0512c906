/* SPDX-License-Identifier: MIT */
/* The slicers for Hopper. A strip's elements stay in registers between the search for the largest and the
   cutting, so the operand is read once. If one block cannot hold a strip, the blocks of a cluster share its k
   and exchange what they found through distributed shared memory. */
#ifndef GPB_SLICED_SLICES_SM90_CUH
#define GPB_SLICED_SLICES_SM90_CUH

#include "kernels/ptx_sm90.cuh"
#include "kernels/sliced/slices.cuh"

/* What all blocks of the cluster know of rows: each block's largest, and its count of elements that come near
   that. */
template <int BLOCKS> struct gpb_cluster_stats {
    unsigned largest[BLOCKS][GPB_SLICE_STRIP], many[BLOCKS][GPB_SLICE_STRIP];

    /* Sends this block's findings to all. */
    __device__ __forceinline__ void broadcast(const gpb_row_stats &here)
    {
        const unsigned self = gpb_cluster_rank();
        for (int x = threadIdx.x; x < GPB_SLICE_STRIP * BLOCKS; x += GPB_SLICE_THREADS) {
            const int row = x % GPB_SLICE_STRIP, rank = x / GPB_SLICE_STRIP;
            gpb_cluster_store(gpb_shared_address(&largest[self][row]), rank, here.largest[row]);
            gpb_cluster_store(gpb_shared_address(&many[self][row]), rank, here.many[row]);
        }
        gpb_cluster_sync();
    }
    /* Combines them for the whole row. A block whose largest comes nowhere near the row's counts for nothing.
       A block counts what comes near its own largest, so up to 2^24 too far down. */
    __device__ __forceinline__ void combine(int row, unsigned &most, unsigned &count) const
    {
        most = count = 0;
#pragma unroll
        for (int y = 0; y < BLOCKS; y++) most = max(most, largest[y][row]);
#pragma unroll
        for (int y = 0; y < BLOCKS; y++) count += largest[y][row] >= gpb_least(most) ? many[y][row] : 0;
    }
};

/* Puts octets right that were loaded from `shift` elements too early, which is a multiple of 16 bytes. The
   elements that an octet lacks are the first of the next thread's octet. For the last thread of the row the
   others load them, one element each. begin: where the row's first octet should begin. With shift 0 there is
   nothing to do, but a branch around it is 3 % slower. */
template <int OCTETS, int STRIDE>
static __device__ __forceinline__ void gpb_shift_in(gpb_octet (&o)[OCTETS], const float *row, int begin,
                                                    int shift, int k)
{
    const int lane = threadIdx.x % GPB_SLICE_OCTETS;
    constexpr int FOURS = (OCTETS + 3) / 4;
    float beyond[FOURS];
#pragma unroll
    for (int z = 0; z < FOURS; z++) {
        const int p = begin + (4 * z + lane / 4) * STRIDE + GPB_SLICE_STEP - shift + lane % 4;
        beyond[z] = lane % 4 < shift && p < k ? __ldg(row + p) : 0;
    }
#pragma unroll
    for (int y = 0; y < OCTETS; y++) {
        float next[3];
#pragma unroll
        for (int q = 0; q < 3; q++) {
            const float neighbour = __shfl_down_sync(~0u, o[y].x[q], 1, GPB_SLICE_OCTETS);
            const float last = __shfl_sync(~0u, beyond[y / 4], y % 4 * 4 + q, GPB_SLICE_OCTETS);
            next[q] = lane == GPB_SLICE_OCTETS - 1 ? last : neighbour;
        }
        o[y].shift_in(shift, next);
    }
}

/* The bitwise or of the first octet's elements. Nearly always one of them has a rest, and then nothing more
   has to be known. Otherwise of all elements. */
template <int OCTETS>
static __device__ __forceinline__ unsigned gpb_bits_or_rest(const gpb_octet (&o)[OCTETS])
{
    unsigned bits = gpb_bits(o[0]);
    if (!(bits & 3)) {
#pragma unroll
        for (int y = 1; y < OCTETS; y++) bits |= gpb_bits(o[y]);
    }
    return bits;
}

/* Loads the octets that a thread holds, from `begin` on and STRIDE apart, because the blocks of a cluster
   alternate along k. */
template <class T, int SLICES, int OCTETS, int STRIDE>
static __device__ __forceinline__ void gpb_load_held(gpb_octet (&o)[OCTETS], const gpb_slice_operand &x,
                                                     const gpb_strip<T, SLICES> &s, int begin)
{
    if (s.layout != s.MN_MAJOR) {
        const int shift = (int)((uintptr_t)s.src / 4 % 4);
#pragma unroll
        for (int y = 0; y < OCTETS; y++)
            o[y].load_around((const float *)s.src, begin - shift + y * STRIDE, (int)s.k);
        gpb_shift_in<OCTETS, STRIDE>(o, (const float *)s.src, begin - s.octet * 8, shift, (int)s.k);
        return;
    }
    const T *from = s.src + begin / GPB_REALS<T> * x.cs;
    if (s.k - begin >= (OCTETS - 1) * STRIDE + 8) {
#pragma unroll
        for (int y = 0; y < OCTETS; y++, from += STRIDE / GPB_REALS<T> * x.cs) o[y].load(from, x.cs);
    } else {
#pragma unroll
        for (int y = 0; y < OCTETS; y++, from += STRIDE / GPB_REALS<T> * x.cs)
            o[y].load(from, x.cs, s.k - begin - y * STRIDE);
    }
}

/* OCTETS: how many a thread holds. The blocks of a cluster alternate along k. */
template <class T, int SLICES, int OCTETS, int BLOCKS>
static __device__ __forceinline__ void gpb_slice_held(const gpb_slice_operand &x, gpb_side side, int64_t k,
                                                      uint32_t *flagged, unsigned strip, int64_t l)
{
    __shared__ gpb_row_stats here;
    __shared__ gpb_cluster_stats<BLOCKS> all;
    const gpb_strip<T, SLICES> s(x, side, k, strip, l);
    const int rank = BLOCKS > 1 ? gpb_cluster_rank() : 0, begin = rank * GPB_SLICE_STEP + s.octet * 8;
    here.clear();
    /* All have read the last member's cluster_stats. */
    if (BLOCKS > 1) gpb_cluster_sync();
    else __syncthreads();
    gpb_octet o[OCTETS];
    unsigned largest = 0, smallest = ~0u, many = 0;
    constexpr int STRIDE = BLOCKS * GPB_SLICE_STEP;
    gpb_load_held<T, SLICES, OCTETS, STRIDE>(o, x, s, begin);
#pragma unroll
    for (int y = 0; y < OCTETS; y++) s.turn(o[y]);
#pragma unroll
    for (int y = 0; y < OCTETS; y++) {
        const int left = (int)s.k - begin - y * STRIDE;
        if (left >= 8) {
            gpb_reach(o[y], 8, largest, smallest);
            many += 8;
        } else if (left > 0) {
            gpb_reach(o[y], left, largest, smallest);
            many += left;
        }
    }
    atomicMax(&here.largest[s.row], largest);
    if (SLICES == 2) here.note(s.row, gpb_bits_or_rest(o));
    __syncthreads();
    const unsigned least = gpb_least(here.largest[s.row]);
    if (smallest < least) {                                                /* otherwise all elements count */
        many = 0;
#pragma unroll
        for (int y = 0; y < OCTETS; y++) many += gpb_count(o[y], __uint_as_float(least));
    }
    atomicAdd(&here.many[s.row], many);
    __syncthreads();
    if (BLOCKS > 1) {
        all.broadcast(here);
        all.combine(s.row, largest, many);
    } else {
        largest = here.largest[s.row];
        many = here.many[s.row];
    }
    int mark = max(gpb_row_mark(largest, many, k), s.octet ? 0 : here.mark_of(s.row));
    const float scale = gpb_scale(x, s, k, largest, begin == 0), t = gpb_tolerance<SLICES>(k);
    const int chunks_left = (int)(s.chunks - begin / GPB_SLICE_CHUNK);
    char *to = s.place(begin);
    constexpr int STEP = STRIDE / GPB_SLICE_CHUNK;
    if (smallest >= gpb_least(largest)) {
#pragma unroll
        for (int y = 0; y < OCTETS; y++, to += STEP * s.chunk_bytes())
            if (y * STEP < chunks_left) gpb_cut_plain<SLICES>(o[y], scale, to, s.rows * 64);
    } else {
        unsigned nearest = GPB_NO_NEAREST;
        bool missed = false;
#pragma unroll
        for (int y = 0; y < OCTETS; y++, to += STEP * s.chunk_bytes())
            if (y * STEP < chunks_left) {
                gpb_nearest(o[y], nearest);
                missed |= gpb_cut<SLICES>(o[y], scale, t, to, s.rows * 64);
            }
        mark = max(max(mark, missed ? GPB_MARK_WIDE : 0), gpb_mark_of<SLICES>(nearest, scale, t));
    }
    gpb_mark(x, s, k, flagged, here, mark);
}

/* The body of the slicers that read a strip once. */
template <class T, int OCTETS, int BLOCKS>
static __device__ __forceinline__ void gpb_slice_once(const gpb_slice_args &g)
{
    gpb_each_strip(g, blockIdx.x / BLOCKS,
                   [&](const gpb_slice_operand &x, gpb_side side, unsigned strip, int64_t l) {
        if (g.slices == 1) gpb_slice_held<T, 1, OCTETS, BLOCKS>(x, side, g.k, g.flagged, strip, l);
        else gpb_slice_held<T, 2, OCTETS, BLOCKS>(x, side, g.k, g.flagged, strip, l);
    });
}

#endif
