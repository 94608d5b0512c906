/* SPDX-License-Identifier: MIT */
/* Instead of kernels/sliced/ptx_mma.cuh: products are not formed here, so these are only declared. */
#ifndef GPB_SLICED_PTX_MMA_CUH
#define GPB_SLICED_PTX_MMA_CUH

#include "kernels/ptx.cuh"

void gpb_cp_async16(unsigned to, const char *from);
void gpb_ldmatrix4(unsigned (&x)[4], unsigned at);
void gpb_mma_fp16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const float (&c)[4]);

#endif
