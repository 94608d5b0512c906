/* SPDX-License-Identifier: MIT */
/* Image: packing, unpacking, adding up the parts of k, and slicing operands of any depth. It is small,
   because a process loads it with its first kernel. */
#include "kernels/pack.cuh"
#include "kernels/reduce.cuh"
#include "kernels/sliced/slices.cuh"

GPB_PACK_KERNELS(c)
GPB_REDUCE_KERNEL(c)
GPB_SLICE_KERNEL(c)
