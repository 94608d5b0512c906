/* SPDX-License-Identifier: MIT */
/* Image: thin products, and those of short k, in double. */
#include "kernels/shapes/dmma.cuh"
#include "kernels/shapes/short.cuh"
#include "kernels/shapes/steps.cuh"

GPB_STREAM_STEP(d, gemv1)
GPB_STREAM_STEP(d, gevm1)
GPB_STRAIGHT_STEP(d, dmma_thin8, 16)
GPB_STRAIGHT_STEP(d, dmma_thin16, 16)
GPB_STRAIGHT_STEP(d, dmma_flat8, 16)
GPB_STRAIGHT_STEP(d, dmma_flat16, 16)
GPB_SHORT_STEP(d, short256, 64, 32, 32)
GPB_SHORT_STEP(d, short512, 64, 32, 32)

#define GPB_MINE_dgemm_shapes ~, KEEP
#include "kernels/shapes/instance.cuh"
#undef GPB_MINE_dgemm_shapes
