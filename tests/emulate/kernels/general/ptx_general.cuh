/* SPDX-License-Identifier: MIT */
/* Instead of kernels/general/ptx_general.cuh. */
#ifndef GPB_GENERAL_PTX_CUH
#define GPB_GENERAL_PTX_CUH

#include "kernels/ptx.cuh"

alignas(1024) static char gpb_general_shared[232448];   /* 227 KB */
static inline void *gpb_general_memory() { return gpb_general_shared; }

#endif
