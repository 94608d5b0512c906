/* SPDX-License-Identifier: MIT */
/* Image: thin products, and those of short k, in complex. */
#include "kernels/shapes/short.cuh"
#include "kernels/shapes/steps.cuh"

GPB_STREAM_STEP(c, gemv1)
GPB_STREAM_STEP(c, gevm1)
GPB_SHORT_STEP(c, short256, 64, 32, 32)

#define GPB_MINE_cgemm_shapes ~, KEEP
#include "kernels/shapes/instance.cuh"
#undef GPB_MINE_cgemm_shapes
