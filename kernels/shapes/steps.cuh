/* SPDX-License-Identifier: MIT */
/* What the steps of the images ?gemm_shapes are made of. Each adds to its row of gemm.def what a thread, or a
   warp, computes of a tile. */
#ifndef GPB_SHAPES_STEPS_CUH
#define GPB_SHAPES_STEPS_CUH

#include "kernels/shapes/slab.cuh"
#include "kernels/shapes/stream.cuh"
#include "kernels/shapes/strip.cuh"

#define GPB_STEP(p, name, ...)                                                               \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>                     \
    static __device__ __forceinline__ void gpb_##p##_##name(const gpb_tile<gpb_type_##p> &t) \
    {                                                                                        \
        __VA_ARGS__(t);                                                                      \
    }
#define GPB_STREAM_STEP(p, name) \
    GPB_STEP(p, name, gpb_stream_tile<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM>)
/* Of dmma.cuh. wm: rows of a warp. */
#define GPB_STRAIGHT_STEP(p, name, wm) \
    GPB_STEP(p, name, gpb_straight_tile<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, wm>)
/* Of short.cuh. rows: of a walk's step; wm, wn: a warp's part of them. */
#define GPB_SHORT_STEP(p, name, rows, wm, wn) \
    GPB_STEP(p, name, gpb_short<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, rows, wm, wn>::run)
#define GPB_SLAB_STEP(name, tm, tn) GPB_STEP(s, name, gpb_slab<BM, BN, BK, STAGES, THREADS, SMEM, tm, tn>)
#define GPB_STRIP_STEP(name, rows, tm, tn) \
    GPB_STEP(s, name, gpb_strip<BM, BN, BK, STAGES, THREADS, SMEM, rows, tm, tn>)

#endif
