/* SPDX-License-Identifier: MIT */
/* Image: blocks of LAPACK's solvers. */
#define GPB_SOLVE_TYPE z
#include "kernels/solve/instance.cuh"
