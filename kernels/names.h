/* SPDX-License-Identifier: MIT */
/* How a kernel's device symbol is spelled, what the words in the columns of the .def lists mean, and the
   shape of every launch. No other file spells them. */
#ifndef GPB_NAMES_H
#define GPB_NAMES_H

#define GPB_STR_(x) #x
#define GPB_STR(x) GPB_STR_(x)

/* gpb_sgemm_naive: precision letter, operation, name of the row in gemm.def. */
#define GPB_GEMM_SYMBOL(p, name) gpb_##p##gemm_##name
#define GPB_PACK_SYMBOL(p)       gpb_##p##pack
#define GPB_UNPACK_SYMBOL(p)     gpb_##p##unpack
#define GPB_REDUCE_SYMBOL(p)     gpb_##p##reduce
#define GPB_COMBINE_SYMBOL(p)    gpb_##p##combine
#define GPB_SOLVE_SYMBOL_(p, name) gpb_##p##name
#define GPB_SOLVE_SYMBOL(p, name) GPB_SOLVE_SYMBOL_(p, name)       /* solve.def */
#define GPB_SLICER_SYMBOL(p, name) gpb_##p##name       /* slicer.def */

/* MATH: what a kernel promises numerically. u = 2^-24 for s and c, 2^-53 for d and z. Of complex types the
   real and the imaginary part are each a real sum of 2k products: the bounds hold with 2k, and with
   3u|beta C|, because beta C has two products. */
enum gpb_math {
    GPB_MATH_FMA,     /* FMAs of the type's own precision, one rounding each: |e| <= (k+4) u |alpha||A||B| +
                         2u|beta C| */
    GPB_MATH_TF32,  /* operands rounded to TF32's 11 bits, summed in FP32: |e| <= 2^-9 |alpha||A||B| + that */
    /* Each operand is two numbers of 11 bits (FP16; in STRIDED kernels TF32). Three products on tensor cores.
       Sums are promoted to FP32 every 16 to 128 k. |e| as FMA's for k >= 64. SLICED kernels leave blocks of
       C for which this would not hold to other kernels (sliced.h); STRIDED ones compute them with FMAs. */
    GPB_MATH_FP16X3,
    /* Each operand is three BF16 numbers, six products. |e| as FMA's for k >= 64 and rows that reach over at
       most 80 powers of two. */
    GPB_MATH_BF16X6,
    /* Rows as integers of 59 bits, multiplied exactly modulo 15 numbers. |e| as FMA's: residues/README.md. */
    GPB_MATH_INT8X15
};

/* FORM: how a kernel wants its operands.
   STRIDED   any rsa, csa, rsb, csb, any alignment. Edges are guarded inside.
   PADDED    rsa == rsb == 1, csa and csb multiples of 4 elements, bases at multiples of 256 bytes. op(A) is
             zero-padded to multiples of bm x bk and op(B) to bk x bn, so loads need no bounds checks. m, n, k
             are the true sizes. C is the caller's, and stores are guarded.
   PADDED_C  PADDED, and C is a workspace padded to multiples of bm x bn with ldc a multiple of 4: no guards
             at all, beta == 0. gpb_sunpack copies it to the caller's C afterwards.
   SLICED    operands as gpb_sslice leaves them (sliced.h): scaled and cut into FP16 slices, in the layout
             that tensor cores read. C is the caller's, and stores are guarded. Blocks of C whose guard words
             are set are left alone, because an FFMA kernel computes them afterwards.
   MAPPED    operands where they are, fetched by tensor copies: of each one stride is 1, and the other, the
             base and the stride of members are multiples of 16 bytes. m, n, k and batch are below 2^31
             (complex: 2^30). The argument block is gpb_mapped_args. Copies bring zeros for what lies
             outside, and stores are guarded.
   RESIDUES  operands as gpb_?residues leaves them (residues.h). k is at most GPB_RESIDUE_MAX_K. The kernel
             leaves residues of C in partials, of which gpb_?combine, launched with the same arguments, makes
             C. Blocks of C whose guard words are set are left alone, as by SLICED kernels. */
enum gpb_form {
    GPB_FORM_STRIDED, GPB_FORM_PADDED, GPB_FORM_PADDED_C, GPB_FORM_SLICED, GPB_FORM_MAPPED, GPB_FORM_RESIDUES
};

/* What a kernel can do beside its form, in bits. NONE for most.
   STREAM_K     divides the k of a launch's first tiles evenly among the blocks of a round (ffma/streamk.cuh)
   CUTS_TAIL    a SLICED kernel that cuts the tiles of its last, incomplete round along k (sliced/work.cuh)
   LONG_CHAINS  sums its whole k in one chain of FMAs, so cutting k makes it more accurate
   PAIRS        a MAPPED kernel whose blocks come in clusters of two, with tiles side by side: each fetches
                half of their part of op(A) for both
   WHOLE        computes all of C and never a triangle alone, for which its loop has no registers */
enum gpb_cap {
    GPB_CAP_NONE = 0, GPB_CAP_STREAM_K = 1, GPB_CAP_CUTS_TAIL = 2, GPB_CAP_LONG_CHAINS = 4, GPB_CAP_PAIRS = 8,
    GPB_CAP_WHOLE = 16
};

/* LAUNCH. m, n >= 1 because a grid cannot be empty. k may be 0. block and smem of GEMM and SLICED: the row's
   columns.
   GEMM      grid ( GPB_TILES_OF(uplo, m, n, bm, bn), 1, GPB_GRID_Z(batch * splits) ), of triangle.h; with
             Stream-K (gemm_args.h)
             ( streamk_blocks + GPB_TILES_OF(uplo, m, n, bm, bn) * batch - streamk_tiles, 1, 1 )
   MAPPED    grid ( GPB_MAPPED_BLOCKS(uplo, m, n, bm, bn, caps), 1, GPB_GRID_Z(batch * splits) ), in clusters
             of two if the kernel has PAIRS; with Stream-K as GEMM
   SLICED    grid ( as many clusters of GPB_SLICED_CLUSTER blocks as the GPU holds at once, 1, 1 ). A
             multiprocessor holds at most one such block. Kernels without clusters take the same grid.
   RESIDUES  grid ( as many blocks as the GPU has multiprocessors, 1, 1 )
   combine   grid ( GPB_COMBINE_BLOCKS(uplo, m, n), 1, GPB_GRID_Z(batch) ), block GPB_COMBINE_THREADS
   slice     grid ( (GPB_SLICE_STRIPS(m) + GPB_SLICE_STRIPS(n)) * cluster, at least cluster, 1,
             GPB_GRID_Z(batch) ), block GPB_SLICE_THREADS, clusters of the size in slicer.def; m of the real
             product (sliced.h)
   reduce    grid ( GPB_REDUCE_BLOCKS(m, n, splits), 1, GPB_GRID_Z(batch) ), block GPB_REDUCE_THREADS
   pack      grid ( GPB_TILES(rows_padded, cols_padded, GPB_PACK_TILE, GPB_PACK_TILE), 1, GPB_GRID_Z(batch) ),
             block GPB_PACK_THREADS
   unpack    the same with m, n

   Tiles are numbered along x alone, because a grid may have 2^31 - 1 blocks there. Kernels step through the
   batch by gridDim.z. */
#define GPB_TILES(rows, cols, tile_rows, tile_cols) \
    (((rows) + (tile_rows) - 1) / (tile_rows) * (((cols) + (tile_cols) - 1) / (tile_cols)))
#define GPB_GRID_Z(batch) ((batch) < 65535 ? (batch) : 65535)
#define GPB_PACK_TILE    32
#define GPB_PACK_THREADS 256
#define GPB_REDUCE_THREADS 256
#define GPB_REDUCE_FEW     32               /* outputs of a block if there are many parts */
#define GPB_REDUCE_MANY(splits) ((splits) > 16)
#define GPB_REDUCE_OUTPUTS(splits) (GPB_REDUCE_MANY(splits) ? GPB_REDUCE_FEW : GPB_REDUCE_THREADS)
#define GPB_REDUCE_BLOCKS(m, n, splits) \
    (((m) * (n) + GPB_REDUCE_OUTPUTS(splits) - 1) / GPB_REDUCE_OUTPUTS(splits))

/* How many thread blocks a multiprocessor should hold at once. nvcc limits a thread's registers accordingly,
   because all blocks share 65536 of them. With two, one block multiplies while the other waits at a barrier.
   More than 64 results a thread leave no registers for a second block. */
#define GPB_BLOCKS(bm, bn, threads) ((threads) <= 256 && (bm) * (bn) / (threads) <= 64 ? 2 : 1)
/* The same for the kernels of sgemm_ffma. 128 or 64 results a thread need all registers there are; with
   fewer, sums move about and operand banks collide. With fewer results, three blocks of 128 threads are 5 to
   8 % faster at 1024 than two, and eight groups need more than the usual 128 registers. */
#define GPB_FFMA_BLOCKS(bm, bn, threads) (65536 / ((bm) * (bn) / (threads) < 64 ? 168 : 256) / (threads))

/* The same for the kernels with Stream-K, of elements of so many bytes: the host counts on this number. Those
   of other types than s take up to 256 registers a thread (general/product.cuh asserts that it is so). */
#define GPB_STREAMK_BLOCKS(bytes, bm, bn, threads) \
    ((bytes) == 4 ? GPB_FFMA_BLOCKS(bm, bn, threads) : 256 / (threads))

/* The same for MAPPED kernels with so much shared memory: as many as have room. */
#define GPB_MAPPED_PLACES(smem) (227 * 1024 / ((smem) + 1100))

/* True for kernels of shapes/ whose threads have registers for a total, to which they add a sum every 64
   FMAs. */
#define GPB_BANKS(bm, bn) ((bm) * (bn) <= 512)

/* GPB_ONLY(image)(text): the text if the including .cu says `#define GPB_MINE_<image> ~, KEEP`, else
   nothing. */
#define GPB_SECOND_(first, second, ...) second
#define GPB_SECOND(...) GPB_SECOND_(__VA_ARGS__)
#define GPB_KEEP(...) __VA_ARGS__
#define GPB_DROP(...)
#define GPB_ONLY__(which) GPB_##which
#define GPB_ONLY_(which) GPB_ONLY__(which)
#define GPB_ONLY(image) GPB_ONLY_(GPB_SECOND(GPB_MINE_##image, DROP, ))

#endif
