/* SPDX-License-Identifier: MIT */
/* Turns the rows of gemm.def that belong to the including image into kernels. Include it after the steps,
   with GPB_MINE_<image> defined. It has no include guard because each image includes it. */
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)(                                                                         \
    extern "C" __global__ void __launch_bounds__(threads, GPB_BLOCKS(bm, bn, threads))       \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                        \
    { gpb_each_member<gpb_type_##p, bm, bn, bk, gpb_##name<bm, bn, bk, stages, threads, smem>>(g); })
#include "kernels/gemm.def"
#undef KERNEL
