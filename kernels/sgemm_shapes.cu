/* SPDX-License-Identifier: MIT */
/* Image: products that are thin, deep or small. */
#include "kernels/shapes/steps.cuh"

GPB_STREAM_STEP(s, gemv1)
GPB_STREAM_STEP(s, gemv2)
GPB_STREAM_STEP(s, gemv4)
GPB_STREAM_STEP(s, gevm1)
GPB_STREAM_STEP(s, gevm2)
GPB_STREAM_STEP(s, gevm4)
GPB_SLAB_STEP(thin8, 4, 8)
GPB_SLAB_STEP(thin16, 8, 8)
GPB_SLAB_STEP(thin32, 8, 8)
GPB_SLAB_STEP(flat8, 8, 4)
GPB_SLAB_STEP(flat16, 8, 8)
GPB_SLAB_STEP(flat32, 8, 8)
GPB_SLAB_STEP(small32, 4, 8)
GPB_SLAB_STEP(deep32, 8, 8)
GPB_SLAB_STEP(deep64, 8, 8)
GPB_SLAB_STEP(short64, 8, 4)
GPB_STRIP_STEP(short128, 128, 8, 8)
GPB_STRIP_STEP(short256, 64, 8, 8)

#define GPB_MINE_sgemm_shapes ~, KEEP
#include "kernels/shapes/instance.cuh"
#undef GPB_MINE_sgemm_shapes
