/* SPDX-License-Identifier: MIT */
/* Image: packing, unpacking, adding up the parts of k. */
#include "kernels/pack.cuh"
#include "kernels/reduce.cuh"

GPB_PACK_KERNELS(c)
GPB_REDUCE_KERNEL(c)
