/* SPDX-License-Identifier: MIT */
/* Image: the SLICED kernels for tensor cores from sm_80 on (mma.sync). gpb_sslice of another image makes
   their operands. */
#include "kernels/sliced/mma.cuh"

#define GPB_MINE_sgemm_mma ~, KEEP
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)(                                                                         \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                 \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                        \
    { gpb_sliced_mma<bm, bn, bk, stages, threads, smem>(g); })
#include "kernels/gemm.def"
#undef KERNEL
#undef GPB_MINE_sgemm_mma
