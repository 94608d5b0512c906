/* SPDX-License-Identifier: MIT */
/* The inverse of a triangle by halves: two solves divide the rectangle between its two triangles by both of
   them, and each triangle is inverted. Nothing is multiplied by an inverse.

   The inverse by columns, in place, as LAPACK's trtri, getri and potri. A triangle T: T^-1 in the place of T
   from the first column to the last, of a lower one from the last to the first. LU: then X of X L = U^-1 in
   the place of both from the last column to the first; X's columns in another order are the inverse.
   Cholesky: then W W^H, or W^H W, of the triangle's inverse W from the first column on. What is there
   and what is not yet replaced suffice for the rest at any time. Pure. */
#ifndef GPB_INVERSE_H
#define GPB_INVERSE_H

#include "dispatch/triangular.h"

/* A triangle of order n, in place. Column-major, the leading dimension in elements. */
typedef struct gpb_inverse {
    const char *symbol;          /* the exported name that was called, for the trace */
    enum gpb_type type;
    int width;                   /* bits of the caller's integers: 32 or 64 */
    char uplo, diag;             /* 'U' 'L', 'N' 'U'; 0: illegal */
    int64_t n;
    void *a;
    int64_t lda;
} gpb_inverse;

/* The solves in this order, then the triangles in any. */
typedef struct gpb_inverse_halves {
    gpb_triangular left, right;       /* of the rectangle, by the triangle on that side of it */
    gpb_inverse first, second;
} gpb_inverse_halves;

bool gpb_inverse_legal(const gpb_inverse *triangle);
/* Element (row, col). */
static inline void *gpb_inverse_at(const gpb_inverse *t, int64_t row, int64_t col)
{
    return (char *)t->a + (row + col * t->lda) * (int64_t)gpb_type_bytes(t->type);
}
/* The next columns [first, last) of T^-1: the rectangle above their block on the diagonal, or below it, is
   multiplied by -1 and the inverse on that side, and divided by the block, which is then inverted. */
typedef struct gpb_inverse_columns {
    gpb_triangular multiply, divide;
    gpb_inverse block;
} gpb_inverse_columns;

/* Columns [first, last) of X, where those behind are and these are U^-1's: the product of those behind with
   what of L lies below the block is taken from them, and its triangle divides them. */
typedef struct gpb_inverse_division {
    gpb_call product;            /* k = 0: nothing is behind */
    gpb_triangular divide;
} gpb_inverse_division;

gpb_inverse_columns gpb_inverse_next(const gpb_inverse *triangle, int64_t first, int64_t last);
/* u: the upper triangle. l: columns [first, last) of L, of which the first row there is row `first` of the
   matrix. */
gpb_inverse_division gpb_inverse_divide(const gpb_inverse *u, int64_t first, int64_t last, const void *l,
                                        int64_t ldl);
/* For orders of 2 and more. */
gpb_inverse_halves gpb_inverse_halve(const gpb_inverse *triangle);

#endif
