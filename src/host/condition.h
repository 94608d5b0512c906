/* SPDX-License-Identifier: MIT */
/* The norm of an inverse, estimated from a few solves: N. J. Higham, ACM TOMS 14 (1988), p. 381, algorithm
   674, as LAPACK's lacn2 has it. Whoever has factors brings the solves: the embedded LAPACK and the GPU. */
#ifndef GPB_CONDITION_H
#define GPB_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/type.h"

/* x = A^-1 x, or A^-H x if `adjoint`; n elements. False: it cannot. */
typedef bool (*gpb_condition_solve)(void *where, void *x, bool adjoint);

/* *norm: at most the 1-norm of the inverse, and mostly within a factor of three of it; the infinity-norm if
   `of_rows`. x: room for n elements, n >= 1. signs: room for n bytes. False: a solve could not, or its result
   is not finite. */
bool gpb_condition_inverse_norm(enum gpb_type type, int64_t n, bool of_rows, void *x, signed char *signs,
                                gpb_condition_solve solve, void *where, double *norm);

/* No infinity or NaN is on the diagonal. */
bool gpb_condition_is_finite(enum gpb_type type, int64_t n, const void *a, int64_t lda);

#endif
