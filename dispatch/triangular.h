/* SPDX-License-Identifier: MIT */
/* TRSM and TRMM by halves. A triangle is cut into two triangles and a rectangle, and B into two halves. TRSM
   solves for one half, a product with the rectangle takes it out of the other half, and TRSM solves for that.
   TRMM multiplies one half by its triangle, a product with the rectangle adds what the other half gives, and
   TRMM multiplies that. So nearly all of the work is products, which go where products go; the triangles that
   are left are the host's. Each element is computed as by substitution (no triangle is inverted), and
   neither the other triangle nor a unit diagonal is read.

   TRMM by levels, where B as it was stays beside what it becomes: then no part waits for another. The
   diagonal is cut into triangles of one order, and what lies beside two that follow each other, or beside two
   blocks of 2, 4, 8 such triangles, is a level: products that all add to other rows or columns of B, and are
   one batch. Pure. */
#ifndef GPB_TRIANGULAR_H
#define GPB_TRIANGULAR_H

#include "dispatch/call.h"

/* B = alpha op(A) B, or alpha B op(A) if A is on the right. If it solves, B = alpha op(A)^-1 B, or alpha B
   op(A)^-1. Column-major; B is m x n, A a triangle of order m or n. Leading dimensions in elements. */
typedef struct gpb_triangular {
    const char *symbol;          /* the exported name that was called, for the trace */
    bool solves;                 /* TRSM; else TRMM */
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
} gpb_triangular;

/* first, then the product, then second. */
typedef struct gpb_triangular_halves {
    gpb_triangular first, second;
    gpb_call product;
} gpb_triangular_halves;

bool gpb_triangular_legal(const gpb_triangular *t);
/* One member of a batch of TRSM, with A and B there. */
gpb_triangular gpb_triangular_of(const gpb_call *batch, const void *a, int64_t lda, void *b, int64_t ldb);
/* Rows of A. */
static inline int64_t gpb_triangular_order(const gpb_triangular *t)
{
    return t->side == 'L' ? t->m : t->n;
}
/* From the right rows of B are independent: so many of them. */
gpb_triangular gpb_triangular_rows(const gpb_triangular *t, int64_t first, int64_t rows);
/* What is left of a solve of which the first `done` columns of X are in the place of B's: the product (if
   its k is not 0), then second. */
gpb_triangular_halves gpb_triangular_rest(const gpb_triangular *t, int64_t done);
/* True if the first half is the upper left one: the triangle is gone through from its first column on. */
bool gpb_triangular_forwards(const gpb_triangular *t);
/* For triangles of order 2 and more. */
gpb_triangular_halves gpb_triangular_halve(const gpb_triangular *t);
/* The products of the level whose blocks are of order `half`, which is less than that of TRMM's triangle:
   first those of whole blocks, then one whose second block is smaller. They read the B of `was`, a TRMM that
   is t but for B and ldb. Returns how many calls there are: 1 or 2. */
int gpb_triangular_level(const gpb_triangular *t, const gpb_triangular *was, int64_t half,
                         gpb_call products[2]);

#endif
