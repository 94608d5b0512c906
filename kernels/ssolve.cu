/* SPDX-License-Identifier: MIT */
/* Image: blocks of LAPACK's solvers. */
#define GPB_SOLVE_TYPE s
#include "kernels/solve/instance.cuh"
