/* SPDX-License-Identifier: MIT */
/* LU and Cholesky factorisations by halves (the recursion of S. Toledo, SIAM J. Matrix Anal. Appl. 18, 1997,
   and of LAPACK's getrf2 and potrf2). The first half of the columns is factored, a triangular solve and a
   product bring the rest up to date, and the rest is factored. So nearly all of the work is products, which
   go where products go. Pure. */
#ifndef GPB_FACTOR_H
#define GPB_FACTOR_H

#include "dispatch/call.h"
#include "dispatch/policy.h"
#include "dispatch/triangular.h"

/* A = P L U with partial pivoting, or A = L L^H, or U^H U, in place. Column-major, the leading dimension in
   elements. */
typedef struct gpb_factor {
    const char *symbol;          /* the exported name that was called, for the trace */
    enum gpb_type type;
    int width;                   /* bits of the caller's integers, and so of those in ipiv: 32 or 64 */
    char uplo;                   /* Cholesky: the triangle that is stored; 'G': LU; 0: illegal */
    int64_t m, n;                /* rows and columns of A; Cholesky: equal, or a panel: n columns of L and all
                                    m rows of these, n rows of U and all m columns */
    void *a;
    int64_t lda;
    void *ipiv;                  /* LU: min(m, n) row numbers, from 1 on, counted from A's first row */
} gpb_factor;

/* A factorisation is first; of LU, its row exchanges in the other columns; the solve; the product; second; of
   LU, its row exchanges in the columns of first. */
typedef struct gpb_factor_halves {
    gpb_factor first, second;    /* second's ipiv counts from its own first row */
    gpb_triangular triangular;
    gpb_call product;            /* Cholesky: SYRK, or HERK of complex types */
    gpb_call beyond;             /* panels: the same of what lies beyond second's triangle; m = 0: nothing */
} gpb_factor_halves;

/* op(A) X = B by the factors of A, with X in the place of B: getrs, potrs. B is n x nrhs. */
typedef struct gpb_system {
    gpb_factor a;
    char trans;                  /* LU: 'N' 'T' 'C', 0: illegal; Cholesky: 'N' */
    int64_t nrhs;
    void *b;
    int64_t ldb;
} gpb_system;

/* 1 / (norm(A) norm(A^-1)) from the factors of A: gecon, pocon. */
typedef struct gpb_condition {
    gpb_factor factors;
    char norm;                   /* 'O': the 1-norm; 'I': the infinity-norm; 0: illegal */
    double anorm;                /* of A */
    double *rcond;               /* the result */
} gpb_condition;

typedef struct gpb_system_solves {
    gpb_triangular first, second;
} gpb_system_solves;

bool gpb_factor_legal(const gpb_factor *factor);
bool gpb_system_legal(const gpb_system *system);
/* Also false of norms that have answers without any work. */
bool gpb_condition_legal(const gpb_condition *condition);
/* The smaller of m and n: as many pivots, or columns of L. */
static inline int64_t gpb_factor_order(const gpb_factor *factor)
{
    return factor->m < factor->n ? factor->m : factor->n;
}
static inline bool gpb_factor_is_lu(const gpb_factor *factor) { return factor->uplo == 'G'; }
/* The first block has `half` columns: from 1 to the order. */
gpb_factor_halves gpb_factor_cut(const gpb_factor *factor, int64_t half);
/* For orders of 2 and more. */
gpb_factor_halves gpb_factor_halve(const gpb_factor *factor);
/* Cholesky by panels: whatever factors a panel divides what lies beyond its triangle as well, so there is no
   triangular solve. The other triangle may be overwritten, because a small product is cheaper than two. */
gpb_factor_halves gpb_factor_halve_panel(const gpb_factor *panel);
/* The same of L^H L or U U^H, from the triangle of Cholesky and in its place (lauum): first, the product,
   TRMM, second. */
gpb_factor_halves gpb_factor_multiply_halve(const gpb_factor *triangle);
/* The two triangular solves. LU has row exchanges in B before them, or after them if A is transposed. */
gpb_system_solves gpb_system_solve(const gpb_system *system);

#endif
