/* SPDX-License-Identifier: MIT */
/* The steps that slab.cuh makes up: what each adds to its row of gemm.def is the results of a thread, TM x TN. */
#ifndef GPB_SHAPES_STEPS_CUH
#define GPB_SHAPES_STEPS_CUH

#include "kernels/shapes/slab.cuh"

#define GPB_SLAB_STEP(name, tm, tn)                                                     \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>                \
    static __device__ __forceinline__ void gpb_##name(const gpb_tile &t)                \
    { gpb_slab<BM, BN, BK, STAGES, THREADS, SMEM, tm, tn>(t); }

GPB_SLAB_STEP(thin1, 4, 1)
GPB_SLAB_STEP(thin4, 4, 4)
GPB_SLAB_STEP(thin8, 4, 8)
GPB_SLAB_STEP(thin16, 8, 8)
GPB_SLAB_STEP(thin32, 8, 8)
GPB_SLAB_STEP(thin64, 8, 8)
GPB_SLAB_STEP(flat1, 1, 4)
GPB_SLAB_STEP(flat4, 4, 4)
GPB_SLAB_STEP(flat8, 8, 4)
GPB_SLAB_STEP(flat16, 8, 8)
GPB_SLAB_STEP(flat32, 8, 8)
GPB_SLAB_STEP(flat64, 8, 8)
GPB_SLAB_STEP(small32, 4, 8)
GPB_SLAB_STEP(deep32, 8, 8)
GPB_SLAB_STEP(small64, 8, 8)
GPB_SLAB_STEP(thin1c, 4, 1)
GPB_SLAB_STEP(flat1c, 1, 4)
GPB_SLAB_STEP(short64, 8, 8)
GPB_SLAB_STEP(thin1d, 4, 1)
GPB_SLAB_STEP(thin1e, 4, 1)
GPB_SLAB_STEP(flat1d, 1, 4)
GPB_SLAB_STEP(thin4d, 4, 4)
GPB_SLAB_STEP(thin8d, 4, 8)
GPB_SLAB_STEP(short32, 8, 4)

#undef GPB_SLAB_STEP
#endif
