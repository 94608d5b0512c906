/* SPDX-License-Identifier: MIT */
/* Image: thin products, and those of short k, in complex double. */
#include "kernels/shapes/dmma.cuh"
#include "kernels/shapes/short.cuh"
#include "kernels/shapes/steps.cuh"

GPB_STREAM_STEP(z, gemv1)
GPB_STREAM_STEP(z, gevm1)
GPB_STRAIGHT_STEP(z, dmma_thin8, 16)
GPB_STRAIGHT_STEP(z, dmma_thin16, 16)
GPB_STRAIGHT_STEP(z, dmma_flat8, 16)
GPB_STRAIGHT_STEP(z, dmma_flat16, 16)
GPB_SHORT_STEP(z, short256, 64, 16, 32)

#define GPB_MINE_zgemm_shapes ~, KEEP
#include "kernels/shapes/instance.cuh"
#undef GPB_MINE_zgemm_shapes
