/* SPDX-License-Identifier: MIT */
/* Operands of a run: brought to where kernels can read them, and in the form that the plan's kernel wants. */
#ifndef GPB_GPU_OPERAND_H
#define GPB_GPU_OPERAND_H

#include "kernels/gemm_args.h"
#include "src/gpu_copy.h"
#include "src/gpu_run.h"

/* A matrix, or one a member, as a kernel is given it. */
typedef struct gpb_view {
    CUdeviceptr at;                   /* member 0 */
    int64_t rs, cs, between;          /* element strides of op(X), and between members */
    bool scattered;                   /* members of a pointer array, where the program has them: `between` is nothing */
} gpb_view;

typedef struct gpb_operand {
    const void *base;                 /* the caller's */
    const void *const *array;
    int64_t stride, ld;
    enum gpb_place place;             /* DEVICE: kernels see it where it is */
    bool transposed;
    CUdeviceptr panel, packed;        /* in the arena; 0: none */
    int64_t had[4];                   /* member, row, column and rows of the panel that the views show; had[3] = 0: none */
    uint64_t epoch;                   /* of the gpb_ssplit that made `given` */
    gpb_view raw, given;              /* as it was brought; as the plan's kernel is given it */
} gpb_operand;

typedef struct gpb_run {
    gpb_lane *lane;
    CUstream stream;
    const gpb_call *call;
    const gpb_plan *plan;
    gpb_progress *progress;
    gpb_operand a, b, c;
    CUdeviceptr wide_a, wide_b;       /* slices for the plan's wide kernel */
    CUdeviceptr parts;                /* counters and partial sums */
    CUdeviceptr tables;               /* of gpb_gemm_item, then of addresses for packing A, B, C */
    size_t element;
    bool only;                        /* one panel, straight into a C on the device: what the stand-in does can wait until it is needed */
    gpb_gemm_args last;               /* of a SPLIT kernel */
} gpb_run;

/* Bytes of the address tables of a pointer-array batch; 0 for others. */
int64_t gpb_run_tables(const gpb_call *call, const gpb_plan *plan);
/* Table `which` (0: triples for the kernel; 1, 2, 3: addresses of A, B, C for packing). */
CUdeviceptr gpb_run_table(const gpb_run *run, int which);
/* Operands and arena of a run. */
gpb_run gpb_run_begin(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress);
/* A and B of a tile, k1 deep from p on; C, filled if beta != 0, with *panel for its way home. */
CUresult gpb_run_bring_ab(gpb_run *run, const gpb_tile *tile, int64_t p, int64_t k1);
/* Of the A and B that are there, the slices for the plan's wide kernel, where `args`, of the one before it, says that there is need. */
CUresult gpb_run_bring_wide(gpb_run *run, const gpb_tile *tile, const gpb_gemm_args *args, gpb_view *a, gpb_view *b);
CUresult gpb_run_bring_c(gpb_run *run, const gpb_tile *tile, gpb_panel *panel);
/* Fills the addresses and strides of *args; where members are scattered, sends the table of them. a NULL: no A and no B. */
CUresult gpb_run_point(gpb_run *run, const gpb_tile *tile, const gpb_view *a, const gpb_view *b, const gpb_view *c, gpb_gemm_args *args);

#endif
