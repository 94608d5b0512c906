/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers by halves (dispatch/factor.h), on whatever Level 3 they are given: the hub's, which may
   compute on the GPU, or the host's own, behind the embedded LAPACK. */
#ifndef GPB_LAPACK_H
#define GPB_LAPACK_H

#include "dispatch/factor.h"

/* What they call. Blocks up to the order `leaf` are factored by `factor`. */
typedef struct gpb_lapack_parts {
    int64_t leaf;
    int64_t (*factor)(const gpb_factor *factor);        /* returns INFO */
    void (*solve)(const gpb_solve *solve);
    void (*multiply)(const gpb_call *call);             /* GEMM; SYRK, HERK */
} gpb_lapack_parts;

/* getrf, potrf. Returns netlib's INFO: 0, the first pivot that is 0, or the first leading minor that is not
   positive. */
int64_t gpb_lapack_factor(const gpb_factor *factor, const gpb_lapack_parts *parts);
/* getrs, potrs. */
void gpb_lapack_solve(const gpb_system *system, const gpb_lapack_parts *parts);
/* getrf or potrf of the host, by its own routine of that name. */
int64_t gpb_lapack_host_factor(const gpb_factor *factor);

#endif
