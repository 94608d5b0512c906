/* SPDX-License-Identifier: MIT */
/* Image: steps 20 to 25, the general FP32 kernels. */
#define GPB_MINE_sgemm_ffma ~, KEEP
#include "kernels/ffma/ffma.cuh"

#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)(                                                                         \
    extern "C" __global__ void __launch_bounds__(threads, GPB_FFMA_BLOCKS(bm, bn, threads))  \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                        \
    { gpb_each_piece<gpb_type_##p, bm, bn, bk, gpb_##name<bm, bn, bk, stages, threads, smem>>(g); })
#include "kernels/gemm.def"
#undef KERNEL
#undef GPB_MINE_sgemm_ffma
