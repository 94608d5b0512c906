/* SPDX-License-Identifier: MIT */
/* The argument blocks of the kernels of solve/, as gemm_args.h has those of products, and their launches. All
   matrices are in device memory, all sizes and strides in elements. */
#ifndef GPB_SOLVE_ARGS_H
#define GPB_SOLVE_ARGS_H

#include "kernels/digest.h"
#include "kernels/gemm_args.h"

/* The largest panel of LU, block of Cholesky and triangle, by the bytes of an element. A thread has a row of
   the panel in registers, or of the block in shared memory; beside a triangle a warp has columns of B. */
#define GPB_PANEL_COLUMNS(bytes)  ((bytes) == 16 ? 16 : 32)
#define GPB_BLOCK_ORDER(bytes)    ((bytes) == 16 ? 32 : 64)
#define GPB_TRIANGLE_ORDER(bytes) ((bytes) == 16 ? 128 : 256)

/* LAUNCH, block and grid.
   panel_cluster  GPB_PANEL_THREADS, one cluster of GPB_PANEL_BLOCKS(m) blocks, at most GPB_PANEL_CLUSTER
   panel_grid     the same for more blocks, all of which must be on the GPU at once (a cooperative launch)
   cholesky       GPB_CHOLESKY_THREADS, GPB_CHOLESKY_BLOCKS(below, bytes); GPB_ALONE_SHARED(most) bytes of
                  shared memory
   substitute     GPB_SUBSTITUTE_THREADS_OF(real, groups), GPB_SUBSTITUTE_BLOCKS(cols, groups), groups from
                  GPB_SUBSTITUTE_LEAST(real, bytes) to GPB_SUBSTITUTE_GROUPS; GPB_SUBSTITUTE_SHARED(real,
                  bytes) bytes of shared memory; or, for one block on each SM, GPB_SUBSTITUTE_HELPERS(real)
                  threads more, and GPB_ALONE_SHARED(most). real: the bytes of a real number
   multiply       GPB_TRIANGLE_THREADS, GPB_MULTIPLY_BLOCKS(cols, real, bytes), by as many as there are
                  triangles, at most 65535; GPB_TRIANGLE_SHARED(bytes) bytes of shared memory
   trsv           GPB_TRSV_THREADS, at most GPB_TRSV_BLOCKS(n, bytes), all of which must be on the GPU at once
                  (a cooperative launch)
   systems        GPB_SYSTEMS_THREADS, GPB_SYSTEMS_BLOCKS(cols, batch)
   small_systems  GPB_SYSTEMS_THREADS, GPB_SMALL_SYSTEMS_BLOCKS(cols, batch)
   swap           GPB_SWAP_THREADS, at most `cols`; GPB_SWAP_SHARED(rows, count) bytes of shared memory
   identity       GPB_IDENTITY_THREADS, at most `cols`
   digest         GPB_DIGEST_THREADS, as many as `each` needs for all blocks
   mirror         GPB_MIRROR_THREADS, GPB_MIRROR_BLOCKS(n, first)
   trapezoid      GPB_TRAPEZOID_THREADS, GPB_TRAPEZOID_BLOCKS(rows, cols)
   narrow, correct   the same
   norm           GPB_NORM_THREADS, GPB_NORM_BLOCKS(rows)
   judge          GPB_JUDGE_THREADS, at most `cols` */
#define GPB_PANEL_THREADS 512
#define GPB_PANEL_CLUSTER 16
#define GPB_PANEL_BLOCKS(m) (((m) + GPB_PANEL_THREADS - 1) / GPB_PANEL_THREADS)
#define GPB_CHOLESKY_THREADS 160             /* 128 rows, and the warp that leads */
/* Below the diagonal's block, of each thread block. */
#define GPB_CHOLESKY_ROWS(bytes) (GPB_CHOLESKY_THREADS - 32 - GPB_BLOCK_ORDER(bytes))
#define GPB_CHOLESKY_BLOCKS(below, bytes) \
    ((below) ? ((below) + GPB_CHOLESKY_ROWS(bytes) - 1) / GPB_CHOLESKY_ROWS(bytes) : 1)
#define GPB_CHOLESKY_PASS 8                  /* columns */
/* Of one column in shared memory: its rows, and 16 bytes, so that fragments of the FP64 tensor cores meet in
   no bank. */
#define GPB_CHOLESKY_STRIDE(bytes) (GPB_CHOLESKY_THREADS - 32 + 16 / (bytes))
/* For one block on each SM: more than half of its shared memory. Two blocks of `cholesky` on one take 1.4
   times as long (H200). most: what a block can have, which is less than that where an SM has no room for two.
   */
#define GPB_ALONE_SHARED(most) ((most) < 120000 ? (most) : 120000)
#define GPB_TRIANGLE_THREADS 128
/* Numbers with real parts of 8 bytes are in tiles, which the FP64 tensor cores take. */
#define GPB_TRIANGLE_TILED(real) ((real) == 8)
/* Of one column in shared memory, so that neither 16-byte reads of neighbouring rows nor the fragments of the
   FP64 tensor cores meet in a bank. */
#define GPB_TRIANGLE_STRIDE(bytes) (GPB_TRIANGLE_ORDER(bytes) + 4 * 8 / (bytes))
/* Three times eight of its columns, or for tiles of doubles twice 16; its diagonal, and eight rows of B. */
#define GPB_TRIANGLE_SHARED(bytes)                                                                 \
    ((((bytes) == 8 ? 32 : 24) * GPB_TRIANGLE_STRIDE(bytes) + GPB_TRIANGLE_ORDER(bytes) + 32 * 10) \
     * (bytes))
/* The warps that share eight columns of B, a group; groups of a block, which share what it reads of the
   triangle. In tiles each warp has eight columns. */
#define GPB_SUBSTITUTE_WARPS  4
#define GPB_SUBSTITUTE_GROUPS 4
/* If there are fewer columns than a block on each SM needs: of floats a group by itself fetches the triangle
   too slowly (25 us for 256 x 1024 in place of 21), and in tiles there are always as many. */
#define GPB_SUBSTITUTE_LEAST(real, bytes) \
    (GPB_TRIANGLE_TILED(real) ? GPB_SUBSTITUTE_GROUPS : (bytes) == 4 ? 2 : 1)
#define GPB_SUBSTITUTE_WARPS_OF(real) (GPB_TRIANGLE_TILED(real) ? 1 : GPB_SUBSTITUTE_WARPS)
#define GPB_SUBSTITUTE_THREADS_OF(real, groups) (32 * GPB_SUBSTITUTE_WARPS_OF(real) * (groups))
#define GPB_SUBSTITUTE_THREADS GPB_SUBSTITUTE_THREADS_OF(4, GPB_SUBSTITUTE_GROUPS)     /* the most */
/* In tiles, they fetch the triangle for the warps that solve. */
#define GPB_SUBSTITUTE_HELPERS(real) (GPB_TRIANGLE_TILED(real) ? GPB_TRIANGLE_THREADS : 0)
#define GPB_SUBSTITUTE_BLOCKS(cols, groups) (((cols) + 8 * (groups) - 1) / (8 * (groups)))
/* Rows of a group's tile, of which a lane has 16 bytes a column. */
#define GPB_SUBSTITUTE_HIGH(bytes) (8 * 16 / (bytes))
/* In tiles as above. Else twice as many columns of the triangle and blocks of its diagonal, the diagonal, and
   of each group twice as many rows of X, and eight of B. */
#define GPB_SUBSTITUTE_SHARED(real, bytes)                                                              \
    (GPB_TRIANGLE_TILED(real)                                                                           \
         ? GPB_TRIANGLE_SHARED(bytes)                                                                   \
         : (2 * GPB_SUBSTITUTE_HIGH(bytes)                                                              \
                * (GPB_TRIANGLE_STRIDE(bytes) + GPB_SUBSTITUTE_HIGH(bytes) + 16 / (bytes)               \
                   + 8 * GPB_SUBSTITUTE_GROUPS)                                                         \
            + GPB_TRIANGLE_ORDER(bytes) + GPB_SUBSTITUTE_GROUPS * 8 * (8 + 16 / (bytes)))               \
               * (bytes))
/* Without tensor cores a warp of `multiply` has so many columns. */
#define GPB_MULTIPLY_WARP(bytes) ((bytes) == 4 ? 4 : 2)
#define GPB_MULTIPLY_COLUMNS(real, bytes) \
    (GPB_TRIANGLE_TILED(real) ? 32 : GPB_MULTIPLY_WARP(bytes) * GPB_TRIANGLE_THREADS / 32)
#define GPB_MULTIPLY_BLOCKS(cols, real, bytes) \
    (((cols) + GPB_MULTIPLY_COLUMNS(real, bytes) - 1) / GPB_MULTIPLY_COLUMNS(real, bytes))
#define GPB_TRSV_THREADS 256
#define GPB_TRSV_BLOCKS(n, bytes) (((n) + GPB_BLOCK_ORDER(bytes) - 1) / GPB_BLOCK_ORDER(bytes))
#define GPB_SYSTEMS_THREADS 64             /* one for each column */
#define GPB_SYSTEMS_COLUMNS 32             /* that share a triangle */
#define GPB_SMALL_SYSTEM 16                /* the largest order, and the columns that share a triangle */
#define GPB_SYSTEMS_BLOCKS_OF(wide, cols, batch) \
    ((((cols) + (wide) - 1) / (wide) * (batch) * (wide) + GPB_SYSTEMS_THREADS - 1) / GPB_SYSTEMS_THREADS)
#define GPB_SYSTEMS_BLOCKS(cols, batch) GPB_SYSTEMS_BLOCKS_OF(GPB_SYSTEMS_COLUMNS, cols, batch)
#define GPB_SMALL_SYSTEMS_BLOCKS(cols, batch) GPB_SYSTEMS_BLOCKS_OF(GPB_SMALL_SYSTEM, cols, batch)
#define GPB_SWAP_THREADS 512
#define GPB_IDENTITY_THREADS 256
#define GPB_DIGEST_THREADS   256
#define GPB_MIRROR_THREADS   256
#define GPB_MIRROR_TILE      32
#define GPB_MIRROR_BLOCKS(n, first) (((n) + GPB_MIRROR_TILE - 1) / GPB_MIRROR_TILE \
                                     * (((first) + GPB_MIRROR_TILE - 1) / GPB_MIRROR_TILE))
#define GPB_TRAPEZOID_THREADS 256            /* rows of a block */
#define GPB_TRAPEZOID_COLUMNS 16
#define GPB_TRAPEZOID_BLOCKS(rows, cols) \
    (((rows) + GPB_TRAPEZOID_THREADS - 1) / GPB_TRAPEZOID_THREADS \
     * (((cols) + GPB_TRAPEZOID_COLUMNS - 1) / GPB_TRAPEZOID_COLUMNS))
#define GPB_NORM_THREADS 256
#define GPB_NORM_ROWS    32                  /* of a block */
#define GPB_NORM_BLOCKS(rows) (((rows) + GPB_NORM_ROWS - 1) / GPB_NORM_ROWS)
#define GPB_JUDGE_THREADS 256
#define GPB_SWAP_VALUES  16                  /* rows of a column that a thread moves */
#define GPB_SWAP_MOST    (GPB_SWAP_THREADS * GPB_SWAP_VALUES / 2)      /* exchanges of one launch */
#define GPB_SWAP_SHARED(rows, count) (4 * ((rows) + 2 * (count)))

/* Row `from` goes to row `to`; both counted from the matrix's first row. */
typedef struct gpb_row_move {
    int32_t to, from;
} gpb_row_move;

/* What one block of a panel_grid shows to the others (gpb_slot): each word with the number of its column. */
#define GPB_PANEL_SLOT_BYTES (2 * (16 + 16 + 32 * 8))

/* LU of the m x n panel at a, with partial pivoting as LAPACK's getf2: the first of the largest |re| + |im|
   of each column. n <= GPB_PANEL_COLUMNS. The panel begins at row and column `first` of the matrix. */
typedef struct gpb_panel_args {
    int64_t m;
    void *a;
    int64_t lda;
    int32_t n, first;
    int32_t *ipiv;                         /* n row numbers of the matrix, from 1 on */
    gpb_row_move *moves;                   /* 2n: the same exchanges as moves at once, some of them twice */
    int32_t *width;                        /* n is written there */
    int32_t *info;                         /* lowered to the number of the first column, from 1 on, whose
                                              pivot is 0 */
    void *slots;                           /* panel_grid: 2 GPB_PANEL_SLOT_BYTES for each block. None of
                                              their words of 8 bytes has one of the numbers arrived + 1 to
                                              arrived + n in its upper half */
    uint32_t *arrivals, arrived;           /* panel_grid: a counter, and its value before the launch. Each
                                              block adds n + 1 */
} gpb_panel_args;

/* A = L L^H of the n x n matrix, of which the lower triangle is read and becomes L, and the `below` rows B
   below it become B L^-H. n <= GPB_BLOCK_ORDER. The upper triangle's U^H U is the same with rs and cs
   exchanged (U is then L^T, of complex types too). */
typedef struct gpb_cholesky_args {
    void *a;
    int64_t rs, cs, below;
    int32_t n, first;                      /* the block's place in the matrix */
    int32_t *info;                         /* lowered to the number of the first leading minor, from 1 on,
                                              that is not positive */
    uint32_t *arrivals, arrived;           /* a counter, and its value before the launch, which adds the
                                              number of its blocks */
} gpb_cholesky_args;

/* B = alpha L^-1 B for the n x n lower triangle L and n x cols B. alpha is not 0, n <= GPB_TRIANGLE_ORDER.
   Any TRSM is this one by strides, which may be negative. L's elements lie at multiples of their size. */
typedef struct gpb_triangle_args {
    const void *l;
    int64_t rsl, csl;
    void *b;
    int64_t rsb, csb, cols;
    double alpha[2];
    int32_t n;
    int32_t unit, conj;                    /* L's diagonal is all ones and not read; L is conjugated */
    int32_t inverts;                       /* substitute: B is the identity, alpha 1, L not conjugated; of
                                              column c the rows before c stay 0 and take no part in
                                              anything, whatever L has */
    int32_t ready;                         /* substitute: no launch that has not ended writes to L */
} gpb_triangle_args;

/* B = alpha L F, by strides likewise, for the triangles L on the diagonal of one of that order, each with its
   own rows of B and F: the first is of order `first`, those that follow it of of.n, and the last has what is
   left. F is B as it was, in its place or in another that has nothing in common with it. */
typedef struct gpb_multiply_args {
    gpb_triangle_args of;
    const void *from;                      /* F */
    int64_t rsf, csf, order;
    int32_t first;                         /* not more than of.n */
} gpb_multiply_args;

/* The same solve for a triangle of any order and one column. */
typedef struct gpb_trsv_args {
    gpb_triangle_args of;                  /* cols is 1, and n has no limit */
    uint32_t *arrivals, arrived;           /* a counter, and its value before the launch, which adds
                                              GPB_TRSV_BLOCKS(n, bytes) */
} gpb_trsv_args;

/* X = alpha L^-1 B for the n x n lower triangles L and the n x cols matrices B of `batch` systems. X may be
   B. alpha is not 0. systems: any n; small_systems: n <= GPB_SMALL_SYSTEM. Of system l the element (0, 0) is
   first_x elements behind x + l * stride_x and so on, or, with items, behind the address there. The strides
   of rows and columns may be negative. */
typedef struct gpb_systems_args {
    const void *l, *b;
    void *x;
    int64_t rsl, csl, rsb, csb, rsx, csx;
    int64_t stride_l, stride_b, stride_x;
    int64_t first_l, first_b, first_x;
    const gpb_gemm_item *items;            /* NULL, or on the device `batch` triples that replace l, b, x. The
                                              triangle is b and the other a if `right` */
    int64_t batch, cols;
    double alpha[2];
    int32_t n;
    int32_t unit, conj, right;             /* L's diagonal is all ones and not read; L is conjugated */
} gpb_systems_args;

/* Exchanges rows [.., rows) of `cols` columns as panels [first, last) of the moves say, in order, or undoes
   it in reverse order. Panels begin at width[first] and follow each other. At most GPB_SWAP_MOST. */
typedef struct gpb_swap_args {
    void *a;
    int64_t lda, cols, rows;
    const gpb_row_move *moves;             /* of column c of the matrix from moves[2 c] on */
    const int32_t *width;                  /* width[c] of the panel that begins or ends with column c */
    int32_t first, last;
    int32_t backwards;
} gpb_swap_args;

/* Element (i, j) of the rows x cols matrix is 1 if i = j + below, else 0. */
typedef struct gpb_identity_args {
    void *a;
    int64_t lda, rows, cols, below;
} gpb_identity_args;

/* All of the n x n symmetric or Hermitian matrix at a, of which one triangle is read, and of a Hermitian
   diagonal the real parts. Of these the `first` columns of a lower triangle, or rows of an upper one, and
   their mirror images; all, if that is n. `to` may be a. */
typedef struct gpb_mirror_args {
    const void *a;
    int64_t lda;
    void *to;
    int64_t ldto, n, first;
    int32_t lower, hermitian;
} gpb_mirror_args;

/* Of the rows x cols matrix `from` the elements (i, j) at and below i = j + diagonal (lower), or at and above
   it. Column j of `to` is column columns[j] of `from`, or j if there are none. */
typedef struct gpb_trapezoid_args {
    const void *from;
    void *to;
    const int32_t *columns;
    int64_t ldfrom, ldto, rows, cols, diagonal;
    int32_t lower;
} gpb_trapezoid_args;

/* The rows x cols matrix `from`, or a triangle of it, in single precision: s of d, c of z, and s and c as
   they are. An element (i, j) of a triangle has i at or below j + shift, or at or above it. Of a triangle's
   diagonal the real parts alone are read. */
typedef struct gpb_narrow_args {
    const void *from;
    void *to;
    int64_t ldfrom, ldto, rows, cols, shift;
    int32_t *overflow;                     /* becomes 1 if a number is beyond single precision */
    char uplo;                             /* 'G': all of it; 'U', 'L': that triangle */
} gpb_narrow_args;

/* X = C, or X += C (adds), and R = B, for rows x cols matrices, of which C is of single precision as above.
   */
typedef struct gpb_correct_args {
    const void *c, *b;
    void *x, *r;
    int64_t ldc, ldb, ldx, ldr, rows, cols;
    int32_t adds;
} gpb_correct_args;

/* The infinity-norm of the rows x cols matrix as the bits of a double. A NaN's are larger than all others. */
typedef struct gpb_norm_args {
    const void *a;
    int64_t lda, rows, cols;
    uint64_t *norm;                        /* 0 before the launch */
} gpb_norm_args;

/* Whether residuals are small: *worse becomes `round` if the largest |re| + |im| of any column of R is
   larger than norm * eps * sqrt(rows) times that of X's column, or, if the norm is finite, if either is
   NaN. */
typedef struct gpb_judge_args {
    const void *x, *r;
    int64_t ldx, ldr, rows, cols;
    const uint64_t *norm;                  /* of the system's matrix, by `norm` */
    double eps;
    int32_t *worse;
    int32_t round;
} gpb_judge_args;

/* Digests of the matrix's parts (digest.h): the polynomials of blocks [each * b, each * (b + 1)) in the order
   of their numbers, GPB_DIGEST_PASSES for each thread block b. */
typedef struct gpb_digest_args {
    const void *a;
    int64_t lda, rows, cols, each;
    const gpb_digest_key *key;
    uint64_t *polynomials;
    char uplo;                             /* 'G': all of it; 'U', 'L': that triangle */
} gpb_digest_args;

#endif
