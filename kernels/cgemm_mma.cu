/* SPDX-License-Identifier: MIT */
/* Image: the SLICED kernels for tensor cores from sm_80 on (mma.sync). gpb_cslice of another image makes
   their operands. */
#define GPB_MINE_cgemm_mma ~, KEEP
#include "kernels/sliced/instance_mma.cuh"
#undef GPB_MINE_cgemm_mma
