/* SPDX-License-Identifier: MIT */
/* Image: products in complex double, by FP64 tensor cores. */
#include "kernels/general/product.cuh"

GPB_GENERAL_STEP(z, dmma, 32, 32)
GPB_GENERAL_STEP(z, dmma_small, 32, 16)
GPB_GENERAL_STEP(z, dmma_grouped, 16, 16)
GPB_GENERAL_STEP(z, thin8, 16, 8)
GPB_GENERAL_STEP(z, thin16, 16, 16)
GPB_GENERAL_STEP(z, flat8, 8, 16)
GPB_GENERAL_STEP(z, flat16, 16, 16)
GPB_GENERAL_STEP(z, small32, 16, 16)

#define GPB_MINE_zgemm_general ~, KEEP
#include "kernels/general/instance.cuh"
#undef GPB_MINE_zgemm_general
