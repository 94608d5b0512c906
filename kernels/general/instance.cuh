/* SPDX-License-Identifier: MIT */
/* Makes kernels of the including image from the rows of gemm.def. Include it after GPB_GENERAL_STEP of each
   row, with GPB_MINE_<image> defined. It has no include guard because each image includes it. */
#define GPB_GENERAL_ROW(p, name, bm, bn, bk, stages, threads, smem) \
    gpb_##p##_##name<bm, bn, bk, stages, threads, smem>
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)              \
    GPB_ONLY(image)(                                                                                         \
    static_assert(!(GPB_CAP_##caps & GPB_CAP_STREAM_K)                                                       \
                  || GPB_GENERAL_ROW(p, name, bm, bn, bk, stages, threads, smem)::shape::BLOCKS              \
                     == GPB_STREAMK_BLOCKS(sizeof(gpb_type_##p), bm, bn, threads),                           \
                  "what the host counts on");                                                                \
    extern "C" __global__ void                                                                               \
    __launch_bounds__(threads, GPB_GENERAL_ROW(p, name, bm, bn, bk, stages, threads, smem)::shape::BLOCKS)   \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                                        \
    {                                                                                                        \
        gpb_each_piece<gpb_type_##p, bm, bn, bk,                                                             \
                       GPB_GENERAL_ROW(p, name, bm, bn, bk, stages, threads, smem)::run>(g);                 \
    })
#include "kernels/gemm.def"
#undef KERNEL
#undef GPB_GENERAL_ROW
