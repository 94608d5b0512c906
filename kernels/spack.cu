/* SPDX-License-Identifier: MIT */
/* Image: packing, unpacking, adding up the parts of k, and slicing operands of any depth for FP32 products.
   It is small, because a process loads it with its first kernel. */
#include "kernels/pack.cuh"
#include "kernels/reduce.cuh"
#include "kernels/sliced/slices.cuh"

GPB_PACK_KERNELS(s)
GPB_REDUCE_KERNEL(s)

extern "C" __global__ void __launch_bounds__(GPB_SLICE_THREADS, 3)
GPB_SLICER_SYMBOL(s, slice)(const __grid_constant__ gpb_slice_args g)
{
    gpb_each_strip(g, blockIdx.x, [&](const gpb_slice_operand &x, unsigned strip, int64_t l) {
        if (g.slices == 1) gpb_slice_strip<1>(x, g.k, g.flagged, strip, l);
        else if (g.slices == 2) gpb_slice_strip<2>(x, g.k, g.flagged, strip, l);
        else gpb_slice_strip<3>(x, g.k, g.flagged, strip, l);
    });
}
