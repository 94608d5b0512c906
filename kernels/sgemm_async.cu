/* SPDX-License-Identifier: MIT */
/* Image: step 15 of the ladder. */
#define GPB_MINE_sgemm_async ~, KEEP
#include "kernels/ladder/15_cp_async.cuh"
#include "kernels/instance.cuh"
#undef GPB_MINE_sgemm_async
