/* SPDX-License-Identifier: MIT */
/* Image: steps 20 to 24, the FP32 kernels of every day. */
#define GPB_MINE_sgemm_ffma ~, KEEP
#include "kernels/ffma/ffma.cuh"
#include "kernels/instance.cuh"
#undef GPB_MINE_sgemm_ffma
