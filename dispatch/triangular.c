/* SPDX-License-Identifier: MIT */
/* See triangular.h. */
#include "dispatch/triangular.h"

#include "dispatch/halves.h"

bool gpb_triangular_legal(const gpb_triangular *t)
{
    return t->side && t->uplo && t->trans && t->diag && t->m >= 0 && t->n >= 0
           && t->lda >= max(1, gpb_triangular_order(t)) && t->ldb >= max(1, t->m);
}

gpb_triangular gpb_triangular_of(const gpb_call *g, const void *a, int64_t lda, void *b, int64_t ldb)
{
    const enum gpb_operand triangle = gpb_call_triangle(g);
    const gpb_matrix *x = &g->x[triangle];
    return (gpb_triangular){ .symbol = g->symbol, .solves = true, .type = g->type, .width = g->width,
                             .row_major = g->row_major, .side = triangle == GPB_A ? 'L' : 'R',
                             .uplo = x->uplo, .trans = x->trans, .diag = x->diag, .m = g->m, .n = g->n,
                             .alpha = g->alpha, .a = a, .lda = lda, .b = b, .ldb = ldb };
}

static const void *element(const gpb_triangular *t, const void *of, int64_t row, int64_t col, int64_t ld)
{
    return (const char *)of + (row + col * ld) * (int64_t)gpb_type_bytes(t->type);
}

/* The triangle of that order from row `at` of A on, and its half of B. */
static gpb_triangular part_of(const gpb_triangular *t, int64_t at, int64_t order)
{
    gpb_triangular part = *t;
    const bool left = t->side == 'L';
    part.a = element(t, t->a, at, at, t->lda);
    part.b = (void *)(uintptr_t)element(t, t->b, left ? at : 0, left ? 0 : at, t->ldb);
    *(left ? &part.m : &part.n) = order;
    return part;
}

/* What of A is stored beside the two triangles, times the half of B that is read, or that times this. A solve
   takes it out of alpha times the other half, which is still the caller's; else alpha times it is added. */
static gpb_call product_of(const gpb_triangular *t, const gpb_triangular *read, const gpb_triangular *written,
                           int64_t half)
{
    const bool left = t->side == 'L', lower = t->uplo == 'L';
    const gpb_matrix a = { .base = element(t, t->a, lower ? half : 0, lower ? 0 : half, t->lda), .ld = t->lda,
                           .trans = t->trans },
                     b = { .base = read->b, .ld = t->ldb, .trans = 'N' };
    return (gpb_call){ .symbol = t->symbol, .type = t->type, .width = t->width, .row_major = t->row_major,
                       .m = written->m, .n = written->n, .k = gpb_triangular_order(read),
                       .alpha = t->solves ? -1 : t->alpha, .beta = t->solves ? t->alpha : 1, .batch = 1,
                       .x = { left ? a : b, left ? b : a,
                              { .base = written->b, .ld = t->ldb, .trans = 'N', .uplo = 'G' } } };
}

bool gpb_triangular_forwards(const gpb_triangular *t)
{
    const bool lower = (t->uplo == 'L') == (t->trans == 'N');       /* op(A) is */
    return (lower == (t->side == 'L')) == t->solves;
}

/* A solve needs the half of B that depends on no other first, and the product reads that. TRMM goes the other
   way, because its product must read a half that is still the caller's. half: the order of the upper left
   triangle. */
static gpb_triangular_halves halve_at(const gpb_triangular *t, int64_t half)
{
    const int64_t order = gpb_triangular_order(t);
    const gpb_triangular upper_left = part_of(t, 0, half), lower_right = part_of(t, half, order - half);
    const bool forwards = gpb_triangular_forwards(t);
    gpb_triangular_halves halves = { .first = forwards ? upper_left : lower_right,
                                     .second = forwards ? lower_right : upper_left };
    if (t->solves) {
        halves.product = product_of(t, &halves.first, &halves.second, half);
        halves.second.alpha = 1;
    } else {
        halves.product = product_of(t, &halves.second, &halves.first, half);
    }
    return halves;
}

gpb_triangular_halves gpb_triangular_halve(const gpb_triangular *t)
{
    return halve_at(t, gpb_halves_first(gpb_triangular_order(t)));
}

/* `batch` products of the level, from the two blocks on that begin at `at`; both have `order` rows. */
static gpb_call level_of(const gpb_triangular *t, const gpb_triangular *was, int64_t at, int64_t half,
                         int64_t order, int64_t batch)
{
    const gpb_triangular to = part_of(t, at, order), from = part_of(was, at, order);
    const bool left = t->side == 'L';
    const enum gpb_operand triangle = left ? GPB_A : GPB_B, other = left ? GPB_B : GPB_A;
    gpb_call product = halve_at(&to, half).product;
    product.x[other] = halve_at(&from, half).product.x[other];
    product.batch = batch;
    product.x[triangle].stride = 2 * half * (t->lda + 1);
    product.x[other].stride = 2 * half * (left ? 1 : was->ldb);
    product.x[GPB_C].stride = 2 * half * (left ? 1 : t->ldb);
    return product;
}

int gpb_triangular_level(const gpb_triangular *t, const gpb_triangular *was, int64_t half,
                         gpb_call products[2])
{
    const int64_t order = gpb_triangular_order(t), whole = order / (2 * half), rest = order % (2 * half);
    int count = 0;
    if (whole) products[count++] = level_of(t, was, 0, half, 2 * half, whole);
    if (rest > half) products[count++] = level_of(t, was, order - rest, half, rest, 1);
    return count;
}

gpb_triangular gpb_triangular_rows(const gpb_triangular *t, int64_t first, int64_t rows)
{
    gpb_triangular some = *t;
    some.b = (void *)(uintptr_t)element(t, t->b, first, 0, t->ldb);
    some.m = rows;
    return some;
}

/* From the left the columns are independent. From the right, those that are there have a part in the others
   if op(A) is an upper triangle. */
gpb_triangular_halves gpb_triangular_rest(const gpb_triangular *t, int64_t done)
{
    const bool left = t->side == 'L', plain = t->trans == 'N', upper = (t->uplo == 'U') == plain;
    gpb_triangular_halves rest = { .second = *t };
    rest.second.b = (void *)(uintptr_t)element(t, t->b, 0, done, t->ldb);
    rest.second.n = t->n - done;
    if (left) return rest;
    rest.second.a = element(t, t->a, done, done, t->lda);
    if (!upper || done == 0) return rest;
    rest.second.alpha = 1;
    rest.product = (gpb_call){
        .symbol = t->symbol, .type = t->type, .width = t->width, .row_major = t->row_major, .m = t->m,
        .n = rest.second.n, .k = done, .alpha = -1, .beta = t->alpha, .batch = 1,
        .x = { { .base = t->b, .ld = t->ldb, .trans = 'N' },
               { .base = element(t, t->a, plain ? 0 : done, plain ? done : 0, t->lda), .ld = t->lda,
                 .trans = t->trans },
               { .base = rest.second.b, .ld = t->ldb, .trans = 'N', .uplo = 'G' } }
    };
    return rest;
}
