/* SPDX-License-Identifier: MIT */
/* Image: the SPLIT kernels of Hopper's tensor cores, and what makes their operands. */
#include "kernels/split/gemm.cuh"
#include "kernels/split/slices_sm90.cuh"

#define GPB_MINE_sgemm_split ~, KEEP
#define GPB_SLICES_FP16X3 2
#define GPB_SLICES_TF32   1
#define GPB_SLICES_BF16X6 3
#define KERNEL(step, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) GPB_ONLY(image)(                \
    extern "C" __global__ void __cluster_dims__(GPB_SPLIT_CLUSTER, 1, 1) __launch_bounds__(threads, 1)                 \
    GPB_GEMM_SYMBOL(s, name)(const __grid_constant__ gpb_gemm_args g)                                                  \
    { gpb_split_gemm<bm, bn, bk, stages, threads, smem, GPB_SLICES_##math>(g); })
#include "kernels/gemm.def"
#undef KERNEL

#define SPLITTER(name, image, most, sharers) GPB_ONLY(image)(                                                          \
    extern "C" __global__ void __cluster_dims__(sharers, 1, 1)                                                         \
    __launch_bounds__(GPB_SPLIT_THREADS, GPB_SPLIT_RESIDENT(most / sharers / GPB_SPLIT_STEP))                          \
    GPB_SPLIT_SYMBOL(s, name)(const __grid_constant__ gpb_split_args g)                                                \
    {                                                                                                                  \
        constexpr int octets = most / sharers / GPB_SPLIT_STEP;                                                        \
        gpb_each_strip(g, blockIdx.x / sharers, [&](const gpb_split_operand &x, unsigned strip, int64_t l) {           \
            if (g.slices == 1) gpb_split_held<1, octets, sharers>(x, g.k, g.notice, strip, l);                         \
            else gpb_split_held<2, octets, sharers>(x, g.k, g.notice, strip, l);                                       \
        });                                                                                                            \
    })
/* Blocks that a multiprocessor should hold: by the registers that so many octets a thread take. */
#define GPB_SPLIT_RESIDENT(octets) ((octets) <= 4 ? 4 : (octets) <= 5 ? 3 : 2)
#include "kernels/split.def"
#undef SPLITTER
#undef GPB_MINE_sgemm_split
