/* SPDX-License-Identifier: MIT */
/* Operands of a run, brought to where kernels can read them and into the form that the plan's kernel
   needs. */
#ifndef GPB_OPERAND_H
#define GPB_OPERAND_H

#include "dispatch/schedule.h"
#include "kernels/gemm_args.h"
#include "src/gpu/dma.h"
#include "src/run/run.h"

/* A matrix, or one for each member, as kernels get it: op(A), op(B) transposed (so that k goes across in
   both), or C. */
typedef struct gpb_view {
    CUdeviceptr at;                   /* member 0 */
    int64_t rs, cs;                   /* elements from a row to the next, from a column to the next */
    int64_t member_stride;            /* elements from a member to the next */
    bool scattered;                   /* members of a pointer array, where the program has them; member_stride
                                         is unused */
} gpb_view;

enum { GPB_OPERAND_NO_STRIP = -1 };

/* A, B or C. A panel of A or B (a block of C) is what is in use at once; strips are numbered within it. */
typedef struct gpb_run_operand {
    enum gpb_operand which;
    gpb_matrix stored;                /* as the caller passed it */
    enum gpb_place place;             /* DEVICE: kernels use it where it is */
    bool k_down;                      /* A, B: stored with k down the columns */
    CUdeviceptr panel, packed, wide;  /* in the arena; 0: none. panel: the first of its buffers; wide: slices
                                         for the plan's wide kernel */
    int buffers;
    int64_t buffer_bytes;             /* from one buffer to the next */
    int64_t ld;                       /* of a symmetric one whose triangle comes in strips (the plan's
                                         `mirrors`): from a column of the panel, which is all of it, to the
                                         next. Else 0 */
    int64_t strip, strip_bytes;       /* rows of op(A) or columns of op(B) in a strip; bytes from strip to
                                         strip in a buffer */
    int64_t at_panel, depth;          /* the panel that the fields below describe; its depth */
    gpb_view source, ready;           /* A, B: as it came, from strip 0, with rs, cs and member_stride still
                                         to be filled in; packed. C: as it is brought; as the kernel gets
                                         it */
    int64_t source_strip, ready_strip;   /* from strip to strip: elements; bytes of slices */
    int64_t unsliced;                 /* a strip that has come and is not sliced yet; < 0: none */
    uint64_t epoch;                   /* of the panel's guard words */
} gpb_run_operand;

/* What one launch computes: a rectangle of C, or several side by side as members of a batch. Only one of
   count and members is above 1. */
typedef struct gpb_launch_set {
    gpb_region tile;                  /* the first rectangle */
    int64_t count;                    /* number of rectangles, one for each strip of `along` */
    enum gpb_operand along;           /* A: the rectangles lie one below the other; B: side by side */
    int64_t strip[2];                 /* of the first rectangle: its strips of A and of B */
} gpb_launch_set;

typedef struct gpb_run {
    gpb_lane *lane;
    CUstream stream;                  /* of the kernels */
    const gpb_call *call;
    const gpb_plan *plan;
    gpb_progress *progress;
    gpb_run_operand x[GPB_OPERANDS];
    CUdeviceptr parts;                /* counters and partial sums */
    CUdeviceptr tables;               /* tables of gpb_gemm_item, then of addresses for packing A, B, C */
    size_t element, table_used;       /* bytes; bytes used of lane->table */
    gpb_gemm_args last;               /* arguments of the last SLICED kernel on C in place */
    struct gpb_run *second;           /* of SYR2K and HER2K: the other product, with the operands' places
                                         exchanged; else NULL. It has the stream, the plan, C and what lies
                                         behind `wide` in common with the first, and adds to what that has
                                         computed */
    bool adds;                        /* it is such a second one */
} gpb_run;

/* Where a panel's strip lies in the caller's matrix as stored: first row and column, and extent. Of a
   triangle that is mirrored on the device, columns from the diagonal down, or rows from it on: the strip's
   other elements are mirror images of strips before it. */
typedef struct gpb_stored {
    int64_t row, col, rows, cols;
} gpb_stored;
gpb_stored gpb_operand_stored(const gpb_run *run, const gpb_move *move);

/* Sets up the operands and the arena of a run. */
gpb_run gpb_operand_begin(gpb_lane *lane, gpb_job *job);
/* The second product's run, for gpb_run.second. call: gpb_call_second, which must outlive it. */
gpb_run gpb_operand_second(const gpb_run *first, const gpb_call *call);
/* True if the move's strip has to be brought to the device. */
bool gpb_operand_comes(const gpb_run *run, const gpb_move *move);
/* Where the move's strip is or will be in the arena (the group's first member). */
CUdeviceptr gpb_operand_strip(const gpb_run *run, const gpb_move *move);
/* The buffer of C that the move's block is computed in. */
CUdeviceptr gpb_operand_block(const gpb_run *run, const gpb_move *move);
/* Queues the mirroring of the `first` columns of that matrix's lower triangle, or rows of the upper one, to
   all of the matrix, of order n, at `to`. The triangle is on the device. */
CUresult gpb_operand_mirror(const gpb_run *run, const gpb_matrix *triangle, CUdeviceptr to, int64_t ldto,
                            int64_t n, int64_t first);
/* The move's strip has come: mirrors, packs or slices it, unless slicing can wait for the other operand's
   strip. */
CUresult gpb_operand_prepare(gpb_run *run, const gpb_move *move);
/* The move's block of C: where it is computed, by `source` and `ready`. */
CUresult gpb_operand_prepare_c(gpb_run *run, const gpb_move *move);

/* A or B as the piece needs it: as it came, or as the plan's kernel is given it. */
gpb_view gpb_operand_view(const gpb_run *run, enum gpb_operand operand, bool ready,
                          const gpb_launch_set *piece);
/* The piece's rectangle of C. */
gpb_view gpb_operand_view_c(const gpb_run *run, const gpb_move *move, const gpb_launch_set *piece);
#endif
