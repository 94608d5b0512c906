/* SPDX-License-Identifier: MIT */
/* The SPLIT form: what gpb_ssplit makes of an operand, and SPLIT kernels read. X stands for op(A), or for op(B) transposed: rows x k.

   Row i is scaled by a power of two, 2^-e(i), so that its largest element lies in [2^14, 2^15), and each element becomes FP16 slices
   (numpy's notation): high = fp16(x), low = fp16((x - high) * 2^11). Slices lie in blocks of 64 rows x 64 k, 8 KiB each: row r of a
   block is 128 bytes, and its 16-byte piece number q lies at piece q ^ (r % 8) (the tensor cores' 128-byte swizzle). Blocks follow each
   other by k, then slice, then row: [chunk of k][slice][block of rows]. Rows are filled up with zeros to a multiple of 128, k to one of 64.

   Behind the blocks: e(i) as int32 for each (filled-up) row, then a guard word for each GPB_GUARD rows. A member of a batch takes
   gpb_split_bytes. */
#ifndef GPB_SPLIT_H
#define GPB_SPLIT_H

#include "kernels/gemm_args.h"

#define GPB_SPLIT_BLOCK   64                /* rows, and k, of a block */
#define GPB_SPLIT_BYTES   8192              /* of a block */
#define GPB_SPLIT_STRIP   16                /* rows that a thread block of gpb_ssplit takes */
#define GPB_SPLIT_THREADS 256
#define GPB_SPLIT_STRIPS(rows) (((rows) + 127) / 128 * (128 / GPB_SPLIT_STRIP))
#define GPB_SPLIT_BLOCKS(sms)  ((sms) / 2 * 2)
#define GPB_SPLIT_COUNTERS 1024             /* words that gpb_ssplit sets to zero for the kernel that follows */

#ifdef __CUDACC__
#define GPB_BOTH static __host__ __device__ __forceinline__
#else
#define GPB_BOTH static inline
#endif

GPB_BOTH int64_t gpb_split_rows(int64_t rows) { return (rows + 127) / 128 * 128; }
GPB_BOTH int64_t gpb_split_chunks(int64_t k) { return (k + GPB_SPLIT_BLOCK - 1) / GPB_SPLIT_BLOCK; }
GPB_BOTH int64_t gpb_split_guards(int64_t rows) { return (rows + GPB_GUARD - 1) / GPB_GUARD; }

/* Where a member's exponents and guard words lie, in bytes from its start; where the next member starts. */
GPB_BOTH int64_t gpb_split_exponents(int64_t rows, int64_t k, int slices)
{
    return gpb_split_chunks(k) * slices * (gpb_split_rows(rows) / GPB_SPLIT_BLOCK) * GPB_SPLIT_BYTES;
}
GPB_BOTH int64_t gpb_split_guard(int64_t rows, int64_t k, int slices)
{
    return gpb_split_exponents(rows, k, slices) + gpb_split_rows(rows) * 4;
}
GPB_BOTH int64_t gpb_split_bytes(int64_t rows, int64_t k, int slices)
{
    return (gpb_split_guard(rows, k, slices) + gpb_split_guards(rows) * 4 + 1023) / 1024 * 1024;
}

/* One operand: X(i,p) = src[i*rs + p*cs]; member l from src + l*stride, or src_items[l]; to dst + l * gpb_split_bytes. */
typedef struct gpb_split_operand {
    const void *src;
    int64_t rs, cs, rows, stride;
    const void *const *src_items;
    void *dst;
} gpb_split_operand;

/* gpb_ssplit: both operands in one launch. */
typedef struct gpb_split_args {
    gpb_split_operand a, b;                /* op(A): rows m; op(B) transposed: rows n */
    int64_t k, batch;
    int slices;                            /* 2: high and low; 1: high alone (TF32's precision) */
    uint32_t epoch;                        /* written to the guard words of blocks that slices do not do justice */
    uint32_t *counters;                    /* GPB_SPLIT_COUNTERS words, set to zero */
    uint32_t *notice;                      /* host memory: set to `epoch` if any guard word was */
} gpb_split_args;

#endif
