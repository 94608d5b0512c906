/* SPDX-License-Identifier: MIT */
/* Image: FP32's accuracy from TF32 tensor cores for thin and flat products, which slice their operands
   themselves. */
#include "kernels/sliced/direct.cuh"

#define GPB_MINE_sgemm_direct ~, KEEP
#include "kernels/instance.cuh"
#undef GPB_MINE_sgemm_direct
