/* SPDX-License-Identifier: MIT */
/* See inverse.h. */
#include "dispatch/inverse.h"

#include "dispatch/halves.h"

bool gpb_inverse_legal(const gpb_inverse *t)
{
    return t->uplo && t->diag && t->n >= 0 && t->lda >= max(1, t->n);
}

/* TRSM of that many rows at b by the block [first, last) of the diagonal, from the right. */
static gpb_triangular by_block(const gpb_inverse *t, int64_t first, int64_t last, int64_t rows, void *b)
{
    return (gpb_triangular){ .symbol = t->symbol, .solves = true, .type = t->type, .width = t->width,
                             .side = 'R', .uplo = t->uplo, .trans = 'N', .diag = t->diag, .m = rows,
                             .n = last - first, .alpha = 1, .a = gpb_inverse_at(t, first, first),
                             .lda = t->lda, .b = b, .ldb = t->lda };
}

gpb_inverse_columns gpb_inverse_next(const gpb_inverse *t, int64_t first, int64_t last)
{
    const bool lower = t->uplo == 'L';
    const int64_t row = lower ? last : 0, rows = lower ? t->n - last : first;
    gpb_inverse_columns to = { .block = *t };
    to.divide = to.multiply = by_block(t, first, last, rows, gpb_inverse_at(t, row, first));
    to.multiply.solves = false;
    to.multiply.side = 'L';
    to.multiply.alpha = -1;
    to.multiply.a = gpb_inverse_at(t, row, row);
    to.block.n = last - first;
    to.block.a = gpb_inverse_at(t, first, first);
    return to;
}

gpb_inverse_division gpb_inverse_divide(const gpb_inverse *u, int64_t first, int64_t last, const void *l,
                                        int64_t ldl)
{
    const int64_t columns = last - first, bytes = (int64_t)gpb_type_bytes(u->type);
    gpb_inverse_division to = {
        .product = { .symbol = u->symbol, .type = u->type, .width = u->width, .m = u->n, .n = columns,
                     .k = u->n - last, .alpha = -1, .beta = 1, .batch = 1,
                     .x = { { .base = gpb_inverse_at(u, 0, last), .ld = u->lda, .trans = 'N' },
                            { .base = (const char *)l + columns * bytes, .ld = ldl, .trans = 'N' },
                            { .base = gpb_inverse_at(u, 0, first), .ld = u->lda, .trans = 'N',
                              .uplo = 'G' } } },
        .divide = by_block(u, first, last, u->n, gpb_inverse_at(u, 0, first))
    };
    to.divide.uplo = 'L';
    to.divide.diag = 'U';
    to.divide.a = l;
    to.divide.lda = ldl;
    return to;
}

gpb_inverse_halves gpb_inverse_halve(const gpb_inverse *t)
{
    const int64_t half = gpb_halves_first(t->n), rest = t->n - half;
    const bool lower = t->uplo == 'L';
    gpb_inverse_halves to = { .first = *t, .second = *t };
    to.first.n = half;
    to.second.n = rest;
    to.second.a = gpb_inverse_at(t, half, half);
    const gpb_inverse *left = lower ? &to.second : &to.first, *right = lower ? &to.first : &to.second;
    const gpb_triangular solve = { .symbol = t->symbol, .solves = true, .type = t->type, .width = t->width,
                                   .uplo = t->uplo, .trans = 'N', .diag = t->diag, .m = lower ? rest : half,
                                   .n = lower ? half : rest, .lda = t->lda, .ldb = t->lda,
                                   .b = lower ? gpb_inverse_at(t, half, 0) : gpb_inverse_at(t, 0, half) };
    to.left = to.right = solve;
    to.left.side = 'L';
    to.left.a = left->a;
    to.left.alpha = -1;
    to.right.side = 'R';
    to.right.a = right->a;
    to.right.alpha = 1;
    return to;
}
