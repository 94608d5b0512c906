/* SPDX-License-Identifier: MIT */
/* Image: products in double, by FP64 tensor cores. */
#include "kernels/general/product.cuh"

GPB_GENERAL_STEP(d, dmma, 32, 64)
GPB_GENERAL_STEP(d, dmma_small, 32, 32)
GPB_GENERAL_STEP(d, dmma_half, 32, 32)
GPB_GENERAL_STEP(d, dmma_grouped, 32, 32)
GPB_GENERAL_STEP(d, thin8, 16, 8)
GPB_GENERAL_STEP(d, thin16, 16, 16)
GPB_GENERAL_STEP(d, thin32, 32, 32)
GPB_GENERAL_STEP(d, flat16, 16, 16)
GPB_GENERAL_STEP(d, flat32, 32, 32)
GPB_GENERAL_STEP(d, small32, 16, 16)

#define GPB_MINE_dgemm_general ~, KEEP
#include "kernels/general/instance.cuh"
#undef GPB_MINE_dgemm_general
