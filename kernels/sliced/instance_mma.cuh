/* SPDX-License-Identifier: MIT */
/* As instance_sm90.cuh, for the kernels of mma.cuh. */
#include "kernels/sliced/mma.cuh"

#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)(                                                                         \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                 \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                        \
    { gpb_sliced_mma<gpb_type_##p, bm, bn, bk, stages, threads, smem>(g); })
#include "kernels/gemm.def"
#undef KERNEL
