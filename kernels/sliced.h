/* SPDX-License-Identifier: MIT */
/* The SLICED form: what gpb_sslice makes of an operand, and SLICED kernels read. X stands for op(A), or for op(B) transposed: rows x k.

   Row i is scaled by a power of two, 2^-e(i), so that its largest element lies in [2^14, 2^15), and each element becomes FP16 slices:
   high = fp16(x), low = fp16((x - high) * 2^11), to nearest. Or, in [2^30, 2^31), three BF16 slices: each of what the ones before leave of x.
   Slices lie chunk by chunk of 32 k, in a chunk slice by slice, in a slice row
   by row of 64 bytes. The four 16-byte pieces of a row are permuted: piece q lies at place q ^ (row / 2 % 4), the tensor cores'
   64-byte swizzle. Rows are filled up with zeros to a multiple of 128, k to one of 32.

   Behind the slices: 2^e(i) as a float for each (filled-up) row, then a guard word for each GPB_GUARD rows, and one that is set if any of
   them is at level 1. A member of a batch takes gpb_sliced_bytes. */
#ifndef GPB_SLICED_H
#define GPB_SLICED_H

#include "kernels/gemm_args.h"

#define GPB_SLICE_CHUNK   32                /* k of a chunk: 64 bytes of FP16 a row */
#define GPB_SLICE_STRIP   8                 /* rows that a thread block of gpb_sslice takes */
#define GPB_SLICE_THREADS 256
#define GPB_SLICE_STRIPS(rows) (((rows) + 127) / 128 * (128 / GPB_SLICE_STRIP))
/* What slices do justice to: see sliced/slices.cuh. */
#define GPB_SLICE_TOP      14               /* exponent of a scaled row's largest element: FP16 ... */
#define GPB_SLICE_WIDE_TOP 30               /* ... and BF16 */
#define GPB_SLICE_SPREAD   80               /* powers of two that a row may reach over */
#define GPB_SLICE_REACH    60               /* exponents that a row's largest may have, either sign */
#define GPB_SLICE_FEWEST   32               /* elements within 2^24 of its largest that a row must have ... */
#define GPB_SLICE_MIN_K  64                 /* ... and elements at all. Such elements for TF32 slices, which have no third one to fall back on:
                                               rows over 40 powers of two with 32 of them had 1.07 times FFMA's rms (H200) */
#define GPB_SLICED_CLUSTER 2                /* thread blocks of a SLICED kernel's cluster */
#define GPB_SLICED_GROUPS 2                 /* of threads in such a block, each with half of the tile's rows and a counter of its own */
#define GPB_SLICED_COUNTERS 1024            /* words that gpb_sslice sets to zero for the kernel that follows */
/* Who cuts k of the last, incomplete round of such a kernel, and how far: see gpb_sliced_tail_parts. */
#define GPB_SLICED_MAX_PARTS   8            /* the last part to finish adds up all of them: more would make it late */
#define GPB_SLICED_MIN_CHUNKS 2             /* of k, in a part, where all parts are computed at once */
#define GPB_SLICED_LATE_CHUNKS  8           /* the same where clusters compute several in turn */
#define GPB_SLICED_MAX_ROUNDS       4       /* parts that a cluster computes at most: partial sums take a tile each */

#ifdef __CUDACC__
#define GPB_BOTH static __host__ __device__ __forceinline__
#else
#define GPB_BOTH static inline
#endif

GPB_BOTH int64_t gpb_sliced_rows(int64_t rows) { return (rows + 127) / 128 * 128; }
GPB_BOTH int64_t gpb_sliced_chunks(int64_t k) { return (k + GPB_SLICE_CHUNK - 1) / GPB_SLICE_CHUNK; }
GPB_BOTH int64_t gpb_sliced_guards(int64_t rows) { return (rows + GPB_GUARD - 1) / GPB_GUARD; }

/* Of elements within 2^24 of a row's largest: half of k, for data that are half zeros, as long as the bound leaves room for it (sliced/ACCURACY.md). */
GPB_BOTH int gpb_sliced_fewest(int64_t k) { return k < GPB_SLICE_MIN_K ? GPB_SLICE_MIN_K : GPB_SLICE_FEWEST; }

/* Where a member's scales 2^e(i) and guard words lie, in bytes from its start; where the next member starts. */
GPB_BOTH int64_t gpb_sliced_scales(int64_t rows, int64_t k, int slices)
{
    return gpb_sliced_chunks(k) * slices * gpb_sliced_rows(rows) * 2 * GPB_SLICE_CHUNK;
}
GPB_BOTH int64_t gpb_sliced_guard(int64_t rows, int64_t k, int slices)
{
    return gpb_sliced_scales(rows, k, slices) + gpb_sliced_rows(rows) * 4;
}
GPB_BOTH int64_t gpb_sliced_bytes(int64_t rows, int64_t k, int slices)
{
    return (gpb_sliced_guard(rows, k, slices) + gpb_sliced_guards(rows) * 8 + 8 + 1023) / 1024 * 1024;
}

/* Bytes for the partial sums of a kernel's last round, whatever gpb_sliced_tail_parts says, on that many clusters. */
GPB_BOTH int64_t gpb_sliced_partial_bytes(int64_t clusters, int64_t tile) { return GPB_SLICED_MAX_ROUNDS * clusters * GPB_SLICED_CLUSTER * tile * 4; }

/* Parts so that each of `clusters` computes one at most; 1 <= rest < clusters. */
GPB_BOTH uint32_t gpb_sliced_tail_parts_once(uint32_t rest, uint32_t clusters, uint32_t chunks)
{
    const uint32_t there = clusters / rest, deep = chunks / GPB_SLICED_MIN_CHUNKS, few = there < deep ? there : deep;
    return few > GPB_SLICED_MAX_PARTS ? GPB_SLICED_MAX_PARTS : few > 1 ? few : 1;
}

/* Parts that k is cut into for each of the `rest` units (pairs of tiles) of the last round. Up to half as many units as clusters: once
   around. More would leave up to half of the GPU idle that way: their parts go around several times (48 units on 66 clusters: four parts,
   192 in three rounds, three quarters of a whole round's time), as many as make rounds * (chunks of a part + what a part costs) least, and
   less than the chunks of a unit that is not cut; of those that do, the fewest. What a part costs: on an H200 a chunk of a 128 x 128 tile
   takes 0.65 us with two slices, adding up parts 6.4, and each tile's beginning and end 2.3 (dispatch/tuned.def), together 8.7 us for two
   rounds and 13.3 for four; six chunks a round are 7.8 and 15.6. A chunk of one slice takes half of that or less, of three twice as long.
   The kernel and the host's predictions compute it alike; it depends on nothing else, so the same call has the same bits. */
GPB_BOTH uint32_t gpb_sliced_tail_parts(uint32_t rest, uint32_t clusters, uint32_t chunks, int slices)
{
    const uint32_t cost = 12 / (uint32_t)slices;
    uint32_t best = 1, least = chunks, rounds = 1, last = rest;            /* parts in the last of the rounds */
    if (rest == 0 || rest > GPB_SLICED_COUNTERS / (GPB_SLICED_CLUSTER * GPB_SLICED_GROUPS)) return 1;
    if (rest <= clusters / 2) return gpb_sliced_tail_parts_once(rest, clusters, chunks);
    for (uint32_t parts = 2; parts <= GPB_SLICED_MAX_PARTS && parts * GPB_SLICED_LATE_CHUNKS <= chunks; parts++) {
        last += rest;
        if (last > clusters) last -= clusters, rounds++;
        if (rounds > GPB_SLICED_MAX_ROUNDS) break;
        const uint32_t time = rounds * ((chunks + parts - 1) / parts + cost);
        if (time < least) least = time, best = parts;
    }
    return best;
}

/* Chunks in a part of a kernel's sums (sliced/gemm.cuh): fewer promotions cost less power, which is what limits large products (an H200 at its
   700 W: 197 TFLOP/s at n = 8192 with one chunk, 208 with two, 215 with four). More than one only where C is so large that nobody cuts k:
   cuBLAS is then 10 u off on positive data at k = 2048, this 3.3; 28 at 16384, this 8. Where cuBLAS does cut k (1024 x 1024 x 2048: 2.8 u) one
   chunk keeps below it. */
GPB_BOTH uint32_t gpb_sliced_promotion_chunks(int64_t m, int64_t n, int64_t k) { return k < 2048 || m * n < 2048 * 2048 ? 1 : k < 8192 ? 2 : 4; }

/* In kernels of sliced/direct.cuh: k of a sum of the tensor cores, and chunks of k whose sums are added up one after the other in FP32 before they are
   put aside. Of positive data tensor cores cut off 1.1 u where each sum of theirs is over 16 k, 2.0 u where it is over 32. FP32's additions are off
   by 0.23 u times the root of their number, which would be 3.7 u for k = 4096 without parts. */
#define GPB_DIRECT_SUM  16
#define GPB_DIRECT_BANK 64

/* One operand: X(i,p) = src[i*rs + p*cs]; member l from src + l*stride, or src_items[l]; to dst + l * gpb_sliced_bytes.
   rows == 0: it is sliced already. Its strips are then absent from the grid. */
typedef struct gpb_slice_operand {
    const void *src;
    int64_t rs, cs, rows, stride;
    const void *const *src_items;
    void *dst;
    uint64_t epoch;                        /* of the guard words of blocks that slices do not do justice */
} gpb_slice_operand;

/* gpb_sslice: both operands in one launch. */
typedef struct gpb_slice_args {
    gpb_slice_operand a, b;                /* op(A): rows m; op(B) transposed: rows n */
    int64_t k, batch;
    int slices;                            /* 2: FP16, high and low; 1: high alone (TF32's precision); 3: BF16 */
    uint32_t *counters;                    /* GPB_SLICED_COUNTERS words, set to zero */
    uint32_t *flagged;                     /* host memory, or NULL: set to 1 if any guard word was */
    /* NULL, or member 0's words behind the guard words of both operands' FP16 slices, with their strides in words and epochs: a member is
       sliced only if either is set. */
    const uint64_t *if_a, *if_b;
    int64_t stride_if_a, stride_if_b;
    uint64_t epoch_if_a, epoch_if_b;
} gpb_slice_args;

#endif
