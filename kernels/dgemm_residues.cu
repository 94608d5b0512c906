/* SPDX-License-Identifier: MIT */
/* Image: products in double by residues on Hopper's INT8 tensor cores. */
#define GPB_MINE_dgemm_residues ~, KEEP
#include "kernels/residues/instance.cuh"
#undef GPB_MINE_dgemm_residues
