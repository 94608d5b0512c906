/* SPDX-License-Identifier: MIT */
/* The steps of image sgemm_shapes. Each adds to its row of gemm.def the results of a thread, TM x TN. */
#ifndef GPB_SHAPES_STEPS_CUH
#define GPB_SHAPES_STEPS_CUH

#include "kernels/shapes/slab.cuh"
#include "kernels/shapes/stream.cuh"
#include "kernels/shapes/strip.cuh"

#define GPB_STEP(name, ...)                                                             \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>                \
    static __device__ __forceinline__ void gpb_##name(const gpb_tile<float> &t) { __VA_ARGS__(t); }
#define GPB_STREAM_STEP(name) GPB_STEP(name, gpb_stream_tile<BM, BN, BK, STAGES, THREADS, SMEM>)
#define GPB_SLAB_STEP(name, tm, tn) GPB_STEP(name, gpb_slab<BM, BN, BK, STAGES, THREADS, SMEM, tm, tn>)
#define GPB_STRIP_STEP(name, rows, tm, tn) \
    GPB_STEP(name, gpb_strip<BM, BN, BK, STAGES, THREADS, SMEM, rows, tm, tn>)

GPB_STREAM_STEP(gemv1)
GPB_STREAM_STEP(gemv2)
GPB_STREAM_STEP(gemv4)
GPB_STREAM_STEP(gevm1)
GPB_STREAM_STEP(gevm2)
GPB_STREAM_STEP(gevm4)
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

#undef GPB_STRIP_STEP
#undef GPB_SLAB_STEP
#undef GPB_STREAM_STEP
#undef GPB_STEP

#endif
