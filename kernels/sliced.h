/* SPDX-License-Identifier: MIT */
/* The SLICED form: what gpb_sslice makes of an operand and SLICED kernels read. X is op(A), or op(B)
   transposed: rows x k.

   Row i is scaled by a power of two, 2^-e(i), so that its largest element lies in [2^14, 2^15). Each element
   becomes two FP16 slices, rounded to nearest: high = fp16(x), low = fp16((x - high) * 2^11). Or the largest
   element lies in [2^30, 2^31), and each element becomes three BF16 slices, each of the rest that the ones
   before leave.

   Slices lie chunk by chunk of 32 k, within a chunk slice by slice, within a slice row by row of 64 bytes.
   The four 16-byte pieces of a row are permuted: piece q lies at place q ^ (row / 2 % 4), which is the
   64-byte swizzle of the tensor cores. Rows are padded with zeros to a multiple of 128, k to a multiple of
   32.

   Behind the slices lie 2^e(i) as a float for each padded row, then a guard word for each GPB_GUARD rows,
   then one word that is set if any of them is at level 1. A member of a batch takes gpb_sliced_bytes.

   A complex product m x n x k is computed as a real one, 2m x n x 2k. Only slicing and storing C know it, so
   every size here and in the arguments of SLICED kernels is of the real product (gpb_sliced_m, gpb_sliced_k).
   Real and imaginary part alternate along k. op(B) transposed has one row for each complex row: X(j,2p) = re,
   X(j,2p+1) = im. op(A) has two, for the real and for the imaginary part of C, each as a strip of 8 rows:
   complex row i becomes row i/8*16 + i%8, X(.,2p) = re, X(.,2p+1) = -im, and row i/8*16 + 8 + i%8, X(.,2p) =
   im, X(.,2p+1) = re. Both have the same magnitudes, so the same scale and the same marks. GPB_GUARD rows
   are GPB_GUARD_ROWS (gemm_args.h) complex rows. */
#ifndef GPB_SLICED_H
#define GPB_SLICED_H

#include "kernels/gemm_args.h"

#define GPB_SLICE_CHUNK   32                /* k of a chunk: 64 bytes of FP16 a row */
#define GPB_SLICE_STRIP   8                 /* rows that a thread block of gpb_sslice takes */
#define GPB_SLICE_THREADS 256
#define GPB_SLICE_STRIPS(rows) (((rows) + 127) / 128 * (128 / GPB_SLICE_STRIP))
/* The limits within which slices are accurate enough: see sliced/slices.cuh. */
#define GPB_SLICE_TOP      14               /* exponent of a scaled row's largest element, with FP16 slices */
#define GPB_SLICE_WIDE_TOP 30               /* the same with BF16 slices */
#define GPB_SLICE_SPREAD   80               /* powers of two that a row may reach over */
#define GPB_SLICE_REACH    60               /* largest exponent, of either sign, of a row's largest element */
#define GPB_SLICE_FEWEST   32               /* elements within 2^24 of its largest that a row must have */
/* The least k. Also the least number of such elements for TF32 slices, because these have no third slice:
   rows over 40 powers of two with 32 of them had 1.07 times FFMA's rms (H200). */
#define GPB_SLICE_MIN_K  64
#define GPB_SLICED_CLUSTER 2                /* thread blocks in a cluster of a SLICED kernel */
#define GPB_SLICED_GROUPS 2                 /* groups of threads in such a block. Each has half of the tile's
                                               rows, and a counter */
#define GPB_SLICED_COUNTERS 1024            /* words that gpb_sslice zeroes for the kernel that follows */
/* How far such a kernel cuts the k of its last, incomplete round: see gpb_sliced_tail_parts. */
#define GPB_SLICED_MAX_PARTS   8            /* the last part to finish adds up all: more would delay it */
#define GPB_SLICED_MIN_CHUNKS 2             /* least chunks of a part if all parts run at once */
#define GPB_SLICED_LATE_CHUNKS  8           /* the same if a cluster computes several parts in turn */
#define GPB_SLICED_MAX_ROUNDS       4       /* most parts a cluster computes: each needs room for a tile */

#ifdef __CUDACC__
#define GPB_BOTH static __host__ __device__ __forceinline__
#else
#define GPB_BOTH static inline
#endif

/* Rows of op(A) and depth of the real product that a product is. op(B) keeps its columns. */
GPB_BOTH int64_t gpb_sliced_m(int is_complex, int64_t m) { return is_complex ? 2 * m : m; }
GPB_BOTH int64_t gpb_sliced_k(int is_complex, int64_t k) { return is_complex ? 2 * k : k; }
/* The complex row of op(A) from which row i comes. Of rows beyond op(A), one beyond it. */
GPB_BOTH int64_t gpb_sliced_complex_row(int64_t i)
{
    return i / (2 * GPB_SLICE_STRIP) * GPB_SLICE_STRIP + i % GPB_SLICE_STRIP;
}

GPB_BOTH int64_t gpb_sliced_rows(int64_t rows) { return (rows + 127) / 128 * 128; }
GPB_BOTH int64_t gpb_sliced_chunks(int64_t k) { return (k + GPB_SLICE_CHUNK - 1) / GPB_SLICE_CHUNK; }
GPB_BOTH int64_t gpb_sliced_guards(int64_t rows) { return (rows + GPB_GUARD - 1) / GPB_GUARD; }

/* How many elements of a row must lie within 2^24 of its largest: half of k, for data that are half zeros, as
   long as the error bound allows it (sliced/ACCURACY.md). */
GPB_BOTH int gpb_sliced_fewest(int64_t k) { return k < GPB_SLICE_MIN_K ? GPB_SLICE_MIN_K : GPB_SLICE_FEWEST; }

/* Where a member's scales 2^e(i) and its guard words lie, in bytes from its start; and where the next member
   starts. */
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

/* Bytes for the partial sums of a kernel's last round on that many clusters, whatever gpb_sliced_tail_parts
   says. tile: results of a tile of the real product, of a complex one 2 * bm * bn. */
GPB_BOTH int64_t gpb_sliced_partial_bytes(int64_t clusters, int64_t tile)
{
    return GPB_SLICED_MAX_ROUNDS * clusters * GPB_SLICED_CLUSTER * tile * 4;
}

/* The number of parts for which each of `clusters` computes at most one. 1 <= rest < clusters. */
GPB_BOTH uint32_t gpb_sliced_tail_parts_once(uint32_t rest, uint32_t clusters, uint32_t chunks)
{
    const uint32_t there = clusters / rest, deep = chunks / GPB_SLICED_MIN_CHUNKS,
                   few = there < deep ? there : deep;
    return few > GPB_SLICED_MAX_PARTS ? GPB_SLICED_MAX_PARTS : few > 1 ? few : 1;
}

/* The number of parts into which the k of each of the `rest` units (pairs of tiles) of the last round is cut.

   If there are at most half as many units as clusters, every cluster computes at most one part. With more
   units that would leave up to half of the GPU idle, so their parts take several rounds (48 units on 66
   clusters: four parts, 192 of them in three rounds, three quarters of a whole round's time). The number is
   the one with the least rounds * (chunks of a part + cost of a part), if that is less than the chunks of a
   whole unit; the smallest of several such.

   The cost of a part: on an H200 a chunk of a 128 x 128 tile takes 0.65 us with two slices, adding up parts
   6.4 us, and the beginning and end of each tile 2.3 us (dispatch/tuned.def). That is 8.7 us for two rounds
   and 13.3 for four; six chunks a round are 7.8 and 15.6. A chunk of one slice takes at most half as long, a
   chunk of three twice as long.

   The kernel and the host's predictions call this same function. It depends on its arguments alone, so the
   same call gives the same bits. */
GPB_BOTH uint32_t gpb_sliced_tail_parts(uint32_t rest, uint32_t clusters, uint32_t chunks, int slices)
{
    const uint32_t cost = 12 / (uint32_t)slices;
    uint32_t best = 1, least = chunks, rounds = 1, last = rest;            /* last: parts in the last round */
    if (rest == 0 || rest > GPB_SLICED_COUNTERS / (GPB_SLICED_CLUSTER * GPB_SLICED_GROUPS)) return 1;
    if (rest <= clusters / 2) return gpb_sliced_tail_parts_once(rest, clusters, chunks);
    for (uint32_t parts = 2; parts <= GPB_SLICED_MAX_PARTS && parts * GPB_SLICED_LATE_CHUNKS <= chunks;
         parts++) {
        last += rest;
        if (last > clusters) {
            last -= clusters;
            rounds++;
        }
        if (rounds > GPB_SLICED_MAX_ROUNDS) break;
        const uint32_t time = rounds * ((chunks + parts - 1) / parts + cost);
        if (time < least) {
            least = time;
            best = parts;
        }
    }
    return best;
}

/* After how many chunks a kernel promotes its sums to FP32 (sliced/gemm.cuh). Fewer promotions need less
   power, which limits large products: on an H200 at its 700 W, n = 8192 runs at 197 TFLOP/s with one chunk,
   208 with two, 215 with four. More than one only where C is so large that nobody cuts k. There cuBLAS is off
   by 10 u on positive data at k = 2048 and 28 at 16384, this by 3.3 and 8. Where cuBLAS cuts k (1024 x 1024 x
   2048: 2.8 u), one chunk stays below it. */
GPB_BOTH uint32_t gpb_sliced_promotion_chunks(int64_t m, int64_t n, int64_t k)
{
    return k < 2048 || m * n < 2048 * 2048 ? 1 : k < 8192 ? 2 : 4;
}

/* For kernels of sliced/direct.cuh: how many k the tensor cores sum up, and how many chunks are summed in one
   chain in FP32 before the sum is put aside. On positive data the tensor cores lose 1.1 u if each of their
   sums is over 16 k, 2.0 u if over 32. FP32 additions lose 0.23 u times the root of their number, which would
   be 3.7 u at k = 4096 in one chain. */
#define GPB_DIRECT_SUM  16
#define GPB_DIRECT_BANK 64

/* One operand: X(i,p) = src[i*rs + p*cs]. Member l is read from src + l*stride or src_items[l], and written
   to dst + l * gpb_sliced_bytes. rows == 0: the operand is sliced already, and its strips are not in the
   grid. Strides are in elements, of complex operands in complex ones; rows and k are the real product's. */
typedef struct gpb_slice_operand {
    const void *src;
    int64_t rs, cs, rows, stride;
    const void *const *src_items;
    void *dst;
    uint64_t epoch;                        /* for the guard words of rows that need another kernel */
} gpb_slice_operand;

/* gpb_sslice, gpb_cslice: slice both operands in one launch. */
typedef struct gpb_slice_args {
    gpb_slice_operand a, b;                /* op(A): rows m; op(B) transposed: rows n */
    int64_t k, batch;
    int slices;  /* 2: FP16, high and low; 1: high alone (TF32's precision); 3: BF16 */
    unsigned char conj_a, conj_b;          /* of complex operands: not 0 if conjugated */
    uint32_t *counters;                    /* GPB_SLICED_COUNTERS words, set to zero */
    uint32_t *flagged;                     /* in host memory, or NULL: set to 1 if any guard word is set */
    /* NULL, or the words of member 0 behind the guard words of both operands' FP16 slices, with their strides
       in words and their epochs. Then a member is sliced only if one of the two words is set. */
    const uint64_t *if_a, *if_b;
    int64_t stride_if_a, stride_if_b;
    uint64_t epoch_if_a, epoch_if_b;
} gpb_slice_args;

#endif
