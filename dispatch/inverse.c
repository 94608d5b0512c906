/* SPDX-License-Identifier: MIT */
/* See inverse.h. */
#include "dispatch/inverse.h"

#include "dispatch/halves.h"

bool gpb_inverse_legal(const gpb_inverse *t)
{
    return t->uplo && t->diag && t->n >= 0 && t->lda >= max(1, t->n);
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
