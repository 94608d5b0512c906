/* SPDX-License-Identifier: MIT */
/* Image: steps 18 and 19 of the ladder. */
#define GPB_MINE_sgemm_tf32 ~, KEEP
#include "kernels/ladder/18_tf32_2stage.cuh"
#include "kernels/ladder/19_tf32_3stage.cuh"
#include "kernels/instance.cuh"
#undef GPB_MINE_sgemm_tf32
