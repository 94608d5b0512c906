/* SPDX-License-Identifier: MIT */
/* The way of LAPACK's solvers. Each function returns true if the call is done, and then *info is LAPACK's.
   False: the caller must pass its own arguments to the host's routine of the same name. */
#ifndef GPB_HUB_FACTOR_H
#define GPB_HUB_FACTOR_H

#include "dispatch/factor.h"
#include "dispatch/inverse.h"

/* getrf, potrf */
bool gpb_factor_offload(const gpb_factor *factor, int64_t *info);
/* getrs, potrs */
bool gpb_system_offload(const gpb_system *system, int64_t *info);
/* gesv, posv: A is factored first. */
bool gpb_system_factor_offload(const gpb_system *system, int64_t *info);
/* dsgesv, dsposv and their complex ones: B is at `given`, the system's b is X. *iter is LAPACK's, too. */
bool gpb_system_refine_offload(const gpb_system *system, const void *given, int64_t ldgiven, int64_t *iter,
                               int64_t *info);
/* lauum */
bool gpb_square_offload(const gpb_factor *triangle, int64_t *info);
/* potri */
bool gpb_cholesky_inverse_offload(const gpb_factor *triangle, int64_t *info);
/* trtri */
bool gpb_inverse_offload(const gpb_inverse *triangle, int64_t *info);
/* trtrs */
bool gpb_triangular_system_offload(const gpb_triangular *solve, int64_t *info);
/* gecon, pocon */
bool gpb_condition_offload(const gpb_condition *condition, int64_t *info);
/* getri, with work of its own */
bool gpb_lu_inverse_offload(const gpb_factor *lu, int64_t *info);

#endif
