/* SPDX-License-Identifier: MIT */
/* Image: blocks of LAPACK's solvers. */
#define GPB_SOLVE_TYPE d
#include "kernels/solve/instance.cuh"
