/* SPDX-License-Identifier: MIT */
/* See solve.h. */
#include "dispatch/solve.h"

#include "dispatch/numbers.h"

bool gpb_solve_legal(const gpb_solve *s)
{
    return s->side && s->uplo && s->trans && s->diag && s->m >= 0 && s->n >= 0
           && s->lda >= max(1, gpb_solve_order(s)) && s->ldb >= max(1, s->m);
}

/* 512 is not measured: it leaves the host 512 / order of the work, and products of k = 512 at least, each of
   which goes to the GPU only if that is faster. If all products are to be there, even small triangles have
   some. */
int64_t gpb_solve_leaf(const gpb_solve *s, enum gpb_offload_when when)
{
    enum { LEAF = 512, LEAST = 32 };
    const int64_t eighth = gpb_solve_order(s) / 8;
    return when != GPB_OFFLOAD_ALWAYS ? LEAF : min(LEAF, max(LEAST, eighth));
}

/* Half of the order, in whole tiles of a kernel if it is large. */
static int64_t half_of(int64_t order)
{
    enum { GRAIN = 256 };
    const int64_t half = ceil_div(order, 2);
    return order > 4 * GRAIN ? round_up(half, GRAIN) : half;
}

static const void *element(const gpb_solve *s, const void *of, int64_t row, int64_t col, int64_t ld)
{
    return (const char *)of + (row + col * ld) * (int64_t)gpb_type_bytes(s->type);
}

/* The part of the solve from row `at` of A on, of that order. */
static gpb_solve part_of(const gpb_solve *s, int64_t at, int64_t order)
{
    gpb_solve part = *s;
    const bool left = s->side == 'L';
    part.a = element(s, s->a, at, at, s->lda);
    part.b = (void *)(uintptr_t)element(s, s->b, left ? at : 0, left ? 0 : at, s->ldb);
    *(left ? &part.m : &part.n) = order;
    return part;
}

/* B_second = alpha B_second - op(A) X_first, or - X_first op(A): what of A is stored beside the two
   triangles. */
static gpb_call product_of(const gpb_solve *s, const gpb_solve *first, const gpb_solve *second, int64_t half)
{
    const bool left = s->side == 'L', lower = s->uplo == 'L';
    const gpb_matrix a = { .base = element(s, s->a, lower ? half : 0, lower ? 0 : half, s->lda), .ld = s->lda,
                           .trans = s->trans },
                     x = { .base = first->b, .ld = s->ldb, .trans = 'N' };
    return (gpb_call){ .symbol = s->symbol, .type = s->type, .width = s->width, .row_major = s->row_major,
                       .m = second->m, .n = second->n, .k = gpb_solve_order(first), .alpha = -1,
                       .beta = s->alpha, .batch = 1,
                       .x = { left ? a : x, left ? x : a,
                              { .base = second->b, .ld = s->ldb, .trans = 'N', .uplo = 'G' } } };
}

gpb_solve_halves gpb_solve_halve(const gpb_solve *s)
{
    const int64_t order = gpb_solve_order(s), half = half_of(order);
    const bool lower = (s->uplo == 'L') == (s->trans == 'N');       /* op(A) is */
    const gpb_solve upper_left = part_of(s, 0, half), lower_right = part_of(s, half, order - half);
    const bool forwards = lower == (s->side == 'L');
    gpb_solve_halves halves = { .first = forwards ? upper_left : lower_right,
                                .second = forwards ? lower_right : upper_left };
    halves.product = product_of(s, &halves.first, &halves.second, half);
    halves.second.alpha = 1;
    return halves;
}
