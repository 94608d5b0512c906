/* SPDX-License-Identifier: MIT */
/* Turns the rows of gemm.def and slicer.def that belong to the including image into kernels, and makes the
   pass behind them. Include it with GPB_MINE_<image> defined. It has no include guard because each image
   includes it. */
#include "kernels/residues/combine.cuh"
#include "kernels/residues/multiply.cuh"
#include "kernels/residues/quantize.cuh"

#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)(                                                                             \
    static_assert(bm == GPB_RESIDUE_BM && bn == GPB_RESIDUE_BN && bk == GPB_RESIDUE_CHUNK        \
                      && threads == GPB_RESIDUE_GROUP * (1 + GPB_RESIDUE_CONSUMERS),             \
                  "one producer, two consumers");                                                \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                     \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                            \
    { gpb_residues_multiply<gpb_type_##p, stages, smem>(g); })
#include "kernels/gemm.def"
#undef KERNEL

#define SLICER(p, name, image, most, cluster) \
    GPB_ONLY(image)(                                                              \
    extern "C" __global__ void __launch_bounds__(GPB_SLICE_THREADS, 2)            \
    GPB_SLICER_SYMBOL(p, name)(const __grid_constant__ gpb_slice_args g)          \
    { gpb_residues<gpb_type_##p>(g); }                                            \
    extern "C" __global__ void __launch_bounds__(GPB_COMBINE_THREADS)             \
    GPB_COMBINE_SYMBOL(p)(const __grid_constant__ gpb_gemm_args g)                \
    { gpb_combine<gpb_type_##p>(g); })
#include "kernels/slicer.def"
#undef SLICER
