/* SPDX-License-Identifier: MIT */
/* Image: products in double on operands that tensor copies can fetch, for Hopper. */
#include "kernels/mapped/product.cuh"

GPB_MAPPED_STEP(d, dmma_tma, 32, 64)
GPB_MAPPED_STEP(d, dmma_tma_half, 32, 32)
GPB_MAPPED_STEP(d, dmma_tma_small, 32, 16)
GPB_MAPPED_STEP(d, dmma_tma_tiny, 16, 16)
GPB_MAPPED_STEP(d, dmma_tma_thin, 16, 16, 4)
GPB_MAPPED_STEP(d, dmma_tma_flat, 16, 16, 4)
GPB_MAPPED_STEP(d, dmma_tma_quarter, 32, 32)

#define GPB_MINE_dgemm_tma ~, KEEP
#include "kernels/mapped/instance.cuh"
#undef GPB_MINE_dgemm_tma
