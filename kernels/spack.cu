/* SPDX-License-Identifier: MIT */
/* Image: packing, unpacking, adding up the parts of k, and slicing operands of any depth for FP32 products.
   It is small, because a process loads it with its first kernel. */
#include "kernels/pack.cuh"
#include "kernels/reduce.cuh"
#include "kernels/sliced/slices.cuh"

GPB_PACK_KERNELS(s)
GPB_REDUCE_KERNEL(s)
GPB_SLICE_KERNEL(s)
