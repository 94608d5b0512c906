/* SPDX-License-Identifier: MIT */
/* Operands cut into slices for tensor cores, with guard words that say where slices are not accurate
   enough. */
#ifndef GPB_SLICE_H
#define GPB_SLICE_H

#include "src/run/operand.h"

enum { GPB_SLICE_UNIT = 4 };

/* A number that no other launch of the slicing kernel in this process has, and no stale memory: see the guard
   words in gemm_args.h. */
uint64_t gpb_slice_epoch(void);
/* Slices the strips that have come and are not sliced yet. Sets the counters of the SLICED kernel that
   follows to zero. */
CUresult gpb_slice_strips(gpb_run *run, const gpb_move *move);
/* Slices a launch set of count 1 for the plan's wide kernel, where the guard words in *args (of the kernel
   before it) say that it is needed. */
CUresult gpb_slice_wide(gpb_run *run, const gpb_launch_set *piece, const gpb_gemm_args *args, gpb_view *a,
                        gpb_view *b);
/* Slices of A or B for that kernel, of `rows` rows of depth k, one member after another. The stride counts
   units of GPB_SLICE_UNIT bytes (gemm_args.h). */
gpb_view gpb_slice_view(const gpb_kernel *kernel, enum gpb_operand which, CUdeviceptr at, int64_t rows,
                        int64_t k);

#endif
