/* SPDX-License-Identifier: MIT */
/* The inverse of a triangle by halves: two solves divide the rectangle between its two triangles by both of
   them, and each triangle is inverted. Nothing is multiplied by an inverse. Pure. */
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
/* For orders of 2 and more. */
gpb_inverse_halves gpb_inverse_halve(const gpb_inverse *triangle);

#endif
