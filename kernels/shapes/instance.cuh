/* SPDX-License-Identifier: MIT */
/* Makes kernels of the including image from the rows of gemm.def. Include it after the steps, with
   GPB_MINE_<image> defined. It has no include guard because each image includes it. */

/* How many blocks a multiprocessor should hold: as many as fit its shared memory (227 KB, and 1 KB more a
   block), with at least 128 registers a thread. */
#define GPB_SHAPES_LESS(a, b) ((a) < (b) ? (a) : (b))
#define GPB_SHAPES_BLOCKS(threads, smem) GPB_SHAPES_LESS(227000 / ((smem) + 1100), 512 / (threads))

#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)       \
    GPB_ONLY(image)(                                                                               \
    extern "C" __global__ void __launch_bounds__(threads, GPB_SHAPES_BLOCKS(threads, smem))        \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                              \
    {                                                                                              \
        gpb_each_member<gpb_type_##p, bm, bn, bk,                                                  \
                        gpb_##p##_##name<bm, bn, bk, stages, threads, smem>,                       \
                        (GPB_CAP_##caps & GPB_CAP_WHOLE) != 0>(g);                                 \
    })
#include "kernels/gemm.def"
#undef KERNEL
#undef GPB_SHAPES_BLOCKS
#undef GPB_SHAPES_LESS
