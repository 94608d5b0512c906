/* SPDX-License-Identifier: MIT */
/* Tensor maps: what the copies of MAPPED kernels read (kernels/gemm_args.h). */
#ifndef GPB_TENSOR_MAP_H
#define GPB_TENSOR_MAP_H

#include <stdbool.h>

#include "dispatch/kernel_table.h"
#include "kernels/gemm_args.h"
#include "src/service/driver.h"

/* True if this driver has tensor maps (CUDA 12). */
bool gpb_tensor_map_known(void);
/* The argument block of a MAPPED kernel that computes one product or two, with maps of A and B if it
   multiplies. An error of the driver if it takes no such operand; packing.h says which ones it takes. */
CUresult gpb_tensor_map_bind(const gpb_kernel *kernel, const gpb_gemm_args *args, int products,
                             gpb_mapped_args *mapped);

#endif
