/* SPDX-License-Identifier: MIT */
/* Makes kernels of the including image from the rows of gemm.def. Include it after GPB_MAPPED_STEP of each
   row, with GPB_MINE_<image> defined. It has no include guard because each image includes it. */
#define GPB_MAPPED_ROW(p, name, bm, bn, bk, stages, threads, smem, caps) \
    gpb_##p##_##name<bm, bn, bk, stages, threads, smem, GPB_CAP_##caps>
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)             \
    GPB_ONLY(image)(                                                                                        \
    extern "C" __global__ void                                                                              \
    __cluster_dims__(GPB_MAPPED_ROW(p, name, bm, bn, bk, stages, threads, smem, caps)::SHARERS, 1, 1)       \
    __launch_bounds__(threads, GPB_MAPPED_ROW(p, name, bm, bn, bk, stages, threads, smem, caps)::BLOCKS)    \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_mapped_args g)                                     \
    { gpb_mapped<GPB_MAPPED_ROW(p, name, bm, bn, bk, stages, threads, smem, caps)>(g); })
#include "kernels/gemm.def"
#undef KERNEL
#undef GPB_MAPPED_ROW
