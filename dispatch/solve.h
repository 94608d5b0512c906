/* SPDX-License-Identifier: MIT */
/* TRSM by halves. A triangle is cut into two triangles and a rectangle: the first half of X is solved for, a
   product takes it out of the other half of B, and that half is solved for. So nearly all of the work is
   products, which go where products go; the triangles that are left are the host's. Each element is computed
   as by substitution (no triangle is inverted), and neither the other triangle nor a unit diagonal is read.
   Pure. */
#ifndef GPB_SOLVE_H
#define GPB_SOLVE_H

#include "dispatch/call.h"
#include "dispatch/policy.h"

/* op(A) X = alpha B, or X op(A) = alpha B if A is on the right, with X in the place of B. Column-major; B is
   m x n, A a triangle of order m or n. Leading dimensions in elements. */
typedef struct gpb_solve {
    const char *symbol;          /* the exported name that was called, for the trace */
    enum gpb_type type;
    int width;                   /* bits of the caller's integers: 32 or 64 */
    bool row_major;              /* the caller's order, for the trace only */
    char side, uplo, trans, diag;    /* 'L' 'R', 'U' 'L', 'N' 'T' 'C', 'N' 'U'; 0: illegal */
    int64_t m, n;
    gpb_scalar alpha;
    const void *a;
    int64_t lda;
    void *b;
    int64_t ldb;
} gpb_solve;

/* first, then the product, then second. */
typedef struct gpb_solve_halves {
    gpb_solve first, second;
    gpb_call product;
} gpb_solve_halves;

bool gpb_solve_legal(const gpb_solve *solve);
/* Rows of A. */
static inline int64_t gpb_solve_order(const gpb_solve *solve)
{
    return solve->side == 'L' ? solve->m : solve->n;
}
/* Triangles up to this order are the host's. */
int64_t gpb_solve_leaf(const gpb_solve *solve, enum gpb_offload_when when);
/* For triangles of order 2 and more. */
gpb_solve_halves gpb_solve_halve(const gpb_solve *solve);

#endif
