/* SPDX-License-Identifier: MIT */
/* The spelling of a kernel's device symbol, the words of the .def lists' columns, the shape of every launch. No other file
   spells them. */
#ifndef GPB_NAMES_H
#define GPB_NAMES_H

#define GPB_STR_(x) #x
#define GPB_STR(x) GPB_STR_(x)

/* gpb_sgemm_naive: precision letter, operation, name of the row in gemm.def. */
#define GPB_GEMM_SYMBOL(p, name) gpb_##p##gemm_##name
#define GPB_PACK_SYMBOL(p)       gpb_##p##pack
#define GPB_UNPACK_SYMBOL(p)     gpb_##p##unpack
#define GPB_REDUCE_SYMBOL(p)     gpb_##p##reduce
#define GPB_SLICER_SYMBOL(p, name) gpb_##p##name       /* slicer.def */

/* MATH: what a kernel promises numerically. */
enum gpb_math {
    GPB_MATH_FFMA,    /* FP32 fused multiply-add, one rounding a step: |e| <= (k+4) u |alpha||A||B| + 2u|beta C|, u = 2^-24 */
    GPB_MATH_TF32,    /* operands rounded to TF32's 11 significant bits, FP32 accumulation: |e| <= 2^-9 |alpha||A||B| + that */
    GPB_MATH_FP16X3,  /* each operand two numbers of 11 bits (FP16; TF32 in STRIDED kernels), three products on tensor cores, sums promoted to
                         FP32 every 16 to 128 k: |e| as FFMA's for k >= 64; blocks of rows and columns for which this would not hold are
                         left to others (sliced.h), or, by STRIDED kernels, computed with FMAs */
    GPB_MATH_BF16X6   /* each operand three BF16 numbers, six products: |e| as FFMA's for k >= 64 and rows that reach over 80 powers of two */
};

/* FORM: how a kernel wants its operands.
   STRIDED   any rsa, csa, rsb, csb, any alignment; edges guarded inside.
   PADDED    rsa == rsb == 1; csa, csb multiples of 4 elements, bases aligned to 256 bytes; op(A) zero-padded to multiples of
             bm x bk, op(B) to bk x bn, so that loads need no bounds checks; m, n, k are the true sizes. C is the caller's: guarded.
   PADDED_C  PADDED, and C is a workspace padded to multiples of bm x bn with ldc a multiple of 4: no guard at all, beta == 0;
             gpb_sunpack carries it home afterwards.
   SLICED    operands as gpb_sslice leaves them (sliced.h): scaled, cut into FP16 slices, in the image that tensor cores read; C is the
             caller's: guarded. Blocks of C whose guard words are set are not touched: an FFMA kernel follows for them. */
enum gpb_form { GPB_FORM_STRIDED, GPB_FORM_PADDED, GPB_FORM_PADDED_C, GPB_FORM_SLICED };

/* What a kernel can do beside its form, in bits; NONE for most.
   STREAM_K     shares out the k of a launch's first tiles among the blocks of a round (ffma/streamk.cuh)
   CUTS_TAIL    a SLICED kernel that cuts the tiles of its last, incomplete round along k (sliced/work.cuh)
   LONG_CHAINS  adds up its whole k by FMAs one after the other: parts of k are more accurate */
enum gpb_cap { GPB_CAP_NONE = 0, GPB_CAP_STREAM_K = 1, GPB_CAP_CUTS_TAIL = 2, GPB_CAP_LONG_CHAINS = 4 };

/* LAUNCH. m, n >= 1 (a grid cannot be empty; k may be 0).
   GEMM      grid ( GPB_TILES(m, n, bm, bn), 1, GPB_GRID_Z(batch * splits) ), block threads, smem bytes: the row's columns; with Stream-K
             (gemm_args.h) grid ( streamk_blocks + GPB_TILES(m, n, bm, bn) * batch - streamk_tiles, 1, 1 )
   SLICED    grid ( as many clusters of GPB_SLICED_CLUSTER blocks as the GPU holds at once, 1, 1 ), block threads, smem bytes: the row's columns
             (at most one block a multiprocessor; kernels without clusters take the same grid)
   slice     grid ( (GPB_SLICE_STRIPS(m) + GPB_SLICE_STRIPS(n)) * cluster, at least cluster, 1, GPB_GRID_Z(batch) ), block GPB_SLICE_THREADS;
             clusters of so many (slicer.def)
   reduce    grid ( GPB_REDUCE_BLOCKS(m, n, splits), 1, GPB_GRID_Z(batch) ), block GPB_REDUCE_THREADS
   pack      grid ( GPB_TILES(rows_padded, cols_padded, GPB_PACK_TILE, GPB_PACK_TILE), 1, GPB_GRID_Z(batch) ), block GPB_PACK_THREADS
   unpack    the same with m, n
   Tiles lie along x alone, where a grid may have 2^31 - 1; kernels step through the batch by gridDim.z. */
#define GPB_TILES(rows, cols, tile_rows, tile_cols) (((rows) + (tile_rows) - 1) / (tile_rows) * (((cols) + (tile_cols) - 1) / (tile_cols)))
#define GPB_GRID_Z(batch) ((batch) < 65535 ? (batch) : 65535)
#define GPB_PACK_TILE    32
#define GPB_PACK_THREADS 256
#define GPB_REDUCE_THREADS 256
#define GPB_REDUCE_FEW     32               /* outputs of a block where the parts are many */
#define GPB_REDUCE_MANY(splits) ((splits) > 16)
#define GPB_REDUCE_OUTPUTS(splits) (GPB_REDUCE_MANY(splits) ? GPB_REDUCE_FEW : GPB_REDUCE_THREADS)
#define GPB_REDUCE_BLOCKS(m, n, splits) (((m) * (n) + GPB_REDUCE_OUTPUTS(splits) - 1) / GPB_REDUCE_OUTPUTS(splits))

/* Thread blocks that a multiprocessor should hold at once: nvcc bounds a thread's registers by it (65536 of them are shared by
   all). Two let one block multiply while the other waits at a barrier; more than 64 results a thread leave no registers for
   that. */
#define GPB_BLOCKS(bm, bn, threads) ((threads) <= 256 && (bm) * (bn) / (threads) <= 64 ? 2 : 1)
/* The same of the kernels of sgemm_ffma. 128 or 64 results a thread take what registers there are (without that, sums move about and the
   operand banks collide); of fewer results, three blocks of 128 threads are 5 to 8 % faster at 1024 than two, and eight groups need more
   than the usual 128 registers. The host counts on so many where k is shared out (ffma/streamk.cuh). */
#define GPB_FFMA_BLOCKS(bm, bn, threads) (65536 / ((bm) * (bn) / (threads) < 64 ? 168 : 256) / (threads))

/* Kernels of shapes/ whose threads have registers for totals of what they add up, 64 FMAs at a time. */
#define GPB_BANKS(bm, bn) ((bm) * (bn) <= 512)

/* GPB_ONLY(image)(text): the text where the including .cu has said `#define GPB_MINE_<image> ~, KEEP`, else nothing. */
#define GPB_SECOND_(first, second, ...) second
#define GPB_SECOND(...) GPB_SECOND_(__VA_ARGS__)
#define GPB_KEEP(...) __VA_ARGS__
#define GPB_DROP(...)
#define GPB_ONLY__(which) GPB_##which
#define GPB_ONLY_(which) GPB_ONLY__(which)
#define GPB_ONLY(image) GPB_ONLY_(GPB_SECOND(GPB_MINE_##image, DROP, ))

#endif
