/* SPDX-License-Identifier: MIT */
/* Image: the SLICED kernels for tensor cores from sm_80 on (mma.sync). gpb_sslice of another image makes
   their operands. */
#define GPB_MINE_sgemm_mma ~, KEEP
#include "kernels/sliced/instance_mma.cuh"
#undef GPB_MINE_sgemm_mma
