/* SPDX-License-Identifier: MIT */
/* Rectangles, in runs that memcpy or one loop can take: whole where both sides are tight, else by columns. */
#include "src/rectangle.h"

#include <string.h>

/* A program's floats may lie at any address: gcc must not peel its loop up to an alignment that never comes. */
typedef float loose_float __attribute__((aligned(1), may_alias));

/* Product and sum are rounded one after the other (built with -ffp-contract=off), as a kernel's epilogue in two steps would. */
static void add(const loose_float *restrict from, loose_float *restrict to, int64_t count, float beta)
{
    if (beta == 1)
        for (int64_t i = 0; i < count; i++) to[i] = from[i] + to[i];
    else
        for (int64_t i = 0; i < count; i++) to[i] = from[i] + beta * to[i];
}

static void run(const gpb_rectangle *r, int64_t from, int64_t to, int64_t count)
{
    const size_t e = r->element;
    const char *source = r->from + (size_t)from * e;
    char *target = r->to + (size_t)to * e;
    if (r->adds) add((const void *)source, (void *)target, count, r->beta);
    else memcpy(target, source, (size_t)count * e);
}

void gpb_rectangle_copy(const gpb_rectangle *r)
{
    if (r->rows <= 0 || r->cols <= 0) return;
    if (r->uplo == 'G' && r->ld_from == r->rows && r->ld_to == r->rows) {
        run(r, 0, 0, r->rows * r->cols);
        return;
    }
    for (int64_t j = 0; j < r->cols; j++) {
        const int64_t diagonal = r->col0 + j - r->row0;      /* the local row that meets the diagonal in this column */
        int64_t first = 0, last = r->rows;
        if (r->uplo == 'L' && diagonal > first) first = diagonal;
        if (r->uplo == 'U' && diagonal + 1 < last) last = diagonal + 1;
        if (first < last) run(r, j * r->ld_from + first, j * r->ld_to + first, last - first);
    }
}
