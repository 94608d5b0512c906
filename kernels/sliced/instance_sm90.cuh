/* SPDX-License-Identifier: MIT */
/* Turns the rows of gemm.def and slicer.def that belong to the including image into kernels. Include it with
   GPB_MINE_<image> defined. It has no include guard because each image includes it. */
#include "kernels/sliced/gemm.cuh"
#include "kernels/sliced/slices_sm90.cuh"

#define GPB_SLICES_FP16X3 2
#define GPB_SLICES_TF32   1
#define GPB_SLICES_BF16X6 3
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)            \
    GPB_ONLY(image)(                                                                                    \
    extern "C" __global__ void __cluster_dims__(GPB_SLICED_CLUSTER, 1, 1) __launch_bounds__(threads, 1) \
    GPB_GEMM_SYMBOL(p, name)(const __grid_constant__ gpb_gemm_args g)                                   \
    { gpb_sliced_gemm<gpb_type_##p, bm, bn, bk, stages, threads, smem, GPB_SLICES_##math>(g); })
#include "kernels/gemm.def"
#undef KERNEL

#define SLICER(p, name, image, most, cluster) \
    GPB_ONLY(image)(                                                                                       \
    extern "C" __global__ void __cluster_dims__(cluster, 1, 1)                                             \
    __launch_bounds__(GPB_SLICE_THREADS, GPB_SLICER_BLOCKS(most / cluster / GPB_SLICE_STEP))               \
    GPB_SLICER_SYMBOL(p, name)(const __grid_constant__ gpb_slice_args g)                                   \
    { gpb_slice_once<gpb_type_##p, most / cluster / GPB_SLICE_STEP, cluster>(g); })
/* How many blocks a multiprocessor should hold, by the registers that this many octets a thread need. */
#define GPB_SLICER_BLOCKS(octets) ((octets) <= 4 ? 4 : (octets) <= 5 ? 3 : 2)
#include "kernels/slicer.def"
#undef SLICER
