/* SPDX-License-Identifier: MIT */
/* Image: products in complex, by FMAs. */
#include "kernels/general/product.cuh"

GPB_GENERAL_STEP(c, ffma, 64, 32)
GPB_GENERAL_STEP(c, ffma_small, 64, 32)
GPB_GENERAL_STEP(c, ffma_paired, 64, 32)
GPB_GENERAL_STEP(c, ffma_grouped, 64, 32)
GPB_GENERAL_STEP(c, thin8, 64, 8)
GPB_GENERAL_STEP(c, thin16, 64, 16)
GPB_GENERAL_STEP(c, flat8, 8, 64)
GPB_GENERAL_STEP(c, flat16, 16, 64)
GPB_GENERAL_STEP(c, small32, 16, 16)
GPB_GENERAL_STEP(c, ffma_blocked, 32, 32, 8)

#define GPB_MINE_cgemm_general ~, KEEP
#include "kernels/general/instance.cuh"
#undef GPB_MINE_cgemm_general
