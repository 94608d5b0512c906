/* SPDX-License-Identifier: MIT */
/* Image: the SLICED kernels for Hopper's tensor cores, and the slicers that read an operand once. */
#define GPB_MINE_sgemm_sliced ~, KEEP
#include "kernels/sliced/instance_sm90.cuh"
#undef GPB_MINE_sgemm_sliced
