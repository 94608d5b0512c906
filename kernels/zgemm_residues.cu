/* SPDX-License-Identifier: MIT */
/* Image: products in complex double by residues on Hopper's INT8 tensor cores. */
#define GPB_MINE_zgemm_residues ~, KEEP
#include "kernels/residues/instance.cuh"
#undef GPB_MINE_zgemm_residues
