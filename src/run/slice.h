/* SPDX-License-Identifier: MIT */
/* Operands cut into slices for tensor cores, with the guard words that say where slices are not accurate enough. */
#ifndef GPB_SLICE_H
#define GPB_SLICE_H

#include "src/run/operand.h"

/* A number that no other launch of the slicing kernel in this process has, nor stale memory: see guard words in gemm_args.h. */
uint64_t gpb_slice_epoch(void);
/* Slices the strips that have come and are not sliced yet; sets the counters of the SPLIT kernel that follows to zero. */
CUresult gpb_slice_strips(gpb_run *run, const gpb_move *move);
/* The slices of a launch set of count 1 for the plan's wide kernel, where `args`, of the kernel before it, says that there is need. */
CUresult gpb_slice_wide(gpb_run *run, const gpb_launch_set *piece, const gpb_gemm_args *args, gpb_view *a, gpb_view *b);
/* Slices of `rows` rows of depth k, a member after the other. */
gpb_view gpb_slice_view(CUdeviceptr at, int64_t rows, int64_t k, int slices);

#endif
