/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers by halves (dispatch/factor.h, inverse.h), on whatever Level 3 they are given: the hub's,
   which may compute on the GPU, or the host's own, behind the embedded LAPACK. */
#ifndef GPB_LAPACK_H
#define GPB_LAPACK_H

#include "dispatch/factor.h"
#include "dispatch/inverse.h"

/* What they call. Blocks up to the order `leaf` are factored, inverted and multiplied by
   the first three. */
typedef struct gpb_lapack_parts {
    int64_t leaf;
    int64_t (*factor)(const gpb_factor *factor);        /* returns INFO */
    void (*invert)(const gpb_inverse *triangle);
    void (*square)(const gpb_factor *triangle);
    void (*triangular)(const gpb_triangular *t);        /* TRSM, TRMM */
    void (*multiply)(const gpb_call *call);             /* GEMM; SYRK, HERK */
} gpb_lapack_parts;

/* getrf, potrf. Returns netlib's INFO: 0, the first pivot that is 0, or the first leading minor that is not
   positive. */
int64_t gpb_lapack_factor(const gpb_factor *factor, const gpb_lapack_parts *parts);
/* getrs, potrs. */
void gpb_lapack_solve(const gpb_system *system, const gpb_lapack_parts *parts);
/* trtri. Returns INFO: the first element of the diagonal that is 0, and then nothing is written. */
int64_t gpb_lapack_invert(const gpb_inverse *triangle, const gpb_lapack_parts *parts);
/* trtrs. Returns INFO as trtri does. */
int64_t gpb_lapack_triangular(const gpb_triangular *solve, const gpb_lapack_parts *parts);
/* getri, by blocks of that many columns. work: n times as many elements. Returns INFO as trtri does. */
int64_t gpb_lapack_invert_lu(const gpb_factor *lu, void *work, int64_t columns,
                             const gpb_lapack_parts *parts);
/* lauum */
void gpb_lapack_square(const gpb_factor *triangle, const gpb_lapack_parts *parts);
/* potri. Returns INFO as trtri does. */
int64_t gpb_lapack_invert_cholesky(const gpb_factor *triangle, const gpb_lapack_parts *parts);
/* getrs or potrs of the host. With few right-hand sides it is better than the host's TRSM: at order 4096 with
   one by 20 to 60 ms. */
void gpb_lapack_host_solve(const gpb_system *system);
/* getrf or potrf, trtri and lauum of the host, by its own routine of that name. */
int64_t gpb_lapack_host_factor(const gpb_factor *factor);
void gpb_lapack_host_invert(const gpb_inverse *triangle);
void gpb_lapack_host_square(const gpb_factor *triangle);

#endif
