/* SPDX-License-Identifier: MIT */
/* Image: thin products in complex. */
#include "kernels/shapes/steps.cuh"

GPB_STREAM_STEP(c, gemv1)
GPB_STREAM_STEP(c, gevm1)

#define GPB_MINE_cgemm_shapes ~, KEEP
#include "kernels/shapes/instance.cuh"
#undef GPB_MINE_cgemm_shapes
