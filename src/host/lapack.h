/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers by halves (dispatch/factor.h, inverse.h), on whatever Level 3 they are given: the hub's,
   which may compute on the GPU, or the host's own, behind the embedded LAPACK. */
#ifndef GPB_LAPACK_H
#define GPB_LAPACK_H

#include "dispatch/factor.h"
#include "dispatch/inverse.h"

/* What they call. Blocks up to the order `leaf` are factored, inverted and multiplied by
   the first three. where: the parts' own, passed to all of them; NULL on the host. */
typedef struct gpb_lapack_parts {
    int64_t leaf;
    int64_t (*factor)(void *where, const gpb_factor *factor);        /* returns INFO */
    void (*invert)(void *where, const gpb_inverse *triangle);
    void (*square)(void *where, const gpb_factor *triangle);
    void (*triangular)(void *where, const gpb_triangular *t);        /* TRSM, TRMM */
    void (*multiply)(void *where, const gpb_call *call);             /* GEMM; SYRK, HERK */
    /* Exchanges rows of `cols` columns at a, as pivots [first, last) of the factor's ipiv say. */
    void (*swap)(void *where, const gpb_factor *factor, void *a, int64_t lda, int64_t cols, int64_t first,
                 int64_t last, bool backwards);
    int64_t panels;              /* Cholesky's blocks up to this order go by panels, which `factor` takes; of
                                    theirs the other triangle may be overwritten */
    bool counts_from_top;        /* `factor` and `swap` count pivots from the first row of the whole matrix,
                                    not from their block's */
    void *where;
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
/* After a trtri, getri or potri elsewhere that has left in A the first `done` columns of these, in the order
   of dispatch/inverse.h: the triangle's inverse; of getri then X, of potri then the product. The host does
   the rest. work: as above. */
void gpb_lapack_invert_go_on(const gpb_inverse *triangle, int64_t done);
void gpb_lapack_invert_lu_go_on(const gpb_factor *lu, int64_t done, void *work, int64_t columns);
void gpb_lapack_invert_cholesky_go_on(const gpb_factor *triangle, int64_t done);
/* The number of the first element of the diagonal that is 0, from 1 on, else 0. */
int64_t gpb_lapack_singular(enum gpb_type type, const void *a, int64_t n, int64_t lda);
/* lauum */
void gpb_lapack_square(const gpb_factor *triangle, const gpb_lapack_parts *parts);
/* potri. Returns INFO as trtri does. */
int64_t gpb_lapack_invert_cholesky(const gpb_factor *triangle, const gpb_lapack_parts *parts);
/* getrs or potrs of the host. With few right-hand sides it is better than the host's TRSM: at order 4096 with
   one by 20 to 60 ms. */
void gpb_lapack_host_solve(const gpb_system *system);
/* The host's parts: its own routines of LAPACK, for blocks of any order. */
extern const gpb_lapack_parts gpb_lapack_host;
/* Of them what is no block: its Level 3, and laswp. */
void gpb_lapack_host_triangular(void *where, const gpb_triangular *t);
void gpb_lapack_host_multiply(void *where, const gpb_call *call);
void gpb_lapack_host_swap(void *where, const gpb_factor *factor, void *a, int64_t lda, int64_t cols,
                          int64_t first, int64_t last, bool backwards);
#define GPB_LAPACK_HOST_LEVEL3                                                              \
    .triangular = gpb_lapack_host_triangular, .multiply = gpb_lapack_host_multiply,         \
    .swap = gpb_lapack_host_swap
/* This thread is in a factorisation or a solve of the host that one of these functions called. If that calls
   others by name, they come through our doors, and must not come back to these functions. */
bool gpb_lapack_inside_host(void);
/* After a factorisation elsewhere of which the first `done` columns are in A, and all pivots in ipiv, and the
   other columns are still the caller's: the host factors these. Returns INFO. */
int64_t gpb_lapack_go_on(const gpb_factor *factor, int64_t done);

#endif
