/* SPDX-License-Identifier: MIT */
/* See problem.h. */
#include "tests/problem.h"

#include <ctype.h>

static void *element(enum gpb_type type, void *x, int64_t at)
{
    return (char *)x + at * (int64_t)gpb_type_bytes(type);
}

/* ---- how they lie in memory */

/* B of two products is stored as A is. */
static bool is_transposed(const gpb_problem *p, enum gpb_operand x)
{
    const bool as_a = x == GPB_A || (x == GPB_B && gpb_test_row_of(p->routine)->products == 2);
    const char trans = as_a ? p->transa : x == GPB_B ? p->transb : 'N';
    return trans != 0 && toupper(trans) != 'N' && !gpb_test_sided(p->routine);
}

static gpb_test_shape shape_of(const gpb_problem *p, enum gpb_operand x)
{
    return gpb_test_shape_of(p->routine, x, p->m, p->n, p->k, p->side == 'R');
}

int gpb_problem_lead(const gpb_problem *p, enum gpb_operand x)
{
    const gpb_test_shape s = shape_of(p, x);
    return (int)(is_transposed(p, x) != p->row_major ? s.cols : s.rows);
}

int64_t gpb_problem_lines(const gpb_problem *p, enum gpb_operand x)
{
    const gpb_test_shape s = shape_of(p, x);
    return s.rows + s.cols - gpb_problem_lead(p, x);
}

void gpb_problem_lay_out(gpb_problem *p)
{
    if (gpb_test_sided(p->routine)) p->k = p->side == 'R' ? p->n : p->m;
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) {
        const int lead = gpb_problem_lead(p, x);
        if (p->ld[x] == 0) p->ld[x] = (lead > 1 ? lead : 1) + p->pad;
    }
}

int64_t gpb_problem_span(const gpb_problem *p, enum gpb_operand x)
{
    const int64_t lead = gpb_problem_lead(p, x), lines = gpb_problem_lines(p, x);
    return lead && lines ? (lines - 1) * p->ld[x] + lead : 0;
}

bool gpb_problem_owns(const gpb_problem *p, enum gpb_operand x, int64_t at)
{
    return at >= p->offset && (at - p->offset) % p->ld[x] < gpb_problem_lead(p, x);
}

void gpb_problem_fill(const gpb_problem *p, enum gpb_operand x, void *allocation, uint64_t seed)
{
    const int64_t count = p->offset + gpb_problem_span(p, x);
    const int lead = gpb_problem_lead(p, x);
    gpb_poison(p->type, allocation, count);
    for (int64_t at = p->offset; at < count; at += p->ld[x])
        gpb_test_row_of(p->routine)->fill(p->fill, p->type, element(p->type, allocation, at), lead, &seed);
    gpb_problem_poison_mirror(p, x, element(p->type, allocation, p->offset));
}

void gpb_problem_poison_mirror(const gpb_problem *p, enum gpb_operand x, void *first)
{
    const gpb_call g = gpb_problem_call(p, 1, 0, first, first, NULL);
    if (x != GPB_C) gpb_test_poison_mirror(&g, p->row_major ? !x : x);
}

void gpb_problem_fill_c(const gpb_problem *p, gpb_scalar beta, void *allocation)
{
    gpb_problem like = *p;
    if (p->fill == GPB_FILL_subnormal) like.fill = GPB_FILL_subnormal_c;
    if (beta == 0) gpb_poison(p->type, allocation, p->offset + gpb_problem_span(p, GPB_C));
    else gpb_problem_fill(&like, GPB_C, allocation, 7);
}

/* ---- the call */

static gpb_matrix matrix_of(const gpb_problem *p, enum gpb_operand x, const void *base)
{
    const char trans = x == GPB_A ? p->transa : x == GPB_B ? p->transb : 'N';
    return (gpb_matrix){ .base = base, .ld = p->ld[x], .trans = trans ? (char)toupper(trans) : 'N' };
}

char gpb_problem_op(const gpb_problem *p)
{
    return gpb_test_op(p->routine, p->type, p->transa ? (char)toupper(p->transa) : 'N');
}

gpb_call gpb_problem_call(const gpb_problem *p, gpb_scalar alpha, gpb_scalar beta, const void *a,
                          const void *b, void *c)
{
    gpb_call g = { .type = p->type, .m = p->m, .n = p->n, .k = p->k, .alpha = alpha, .beta = beta,
                   .batch = p->batch ? p->batch : 1, .row_major = p->row_major };
    g.x[GPB_A] = matrix_of(p, GPB_A, a);
    g.x[GPB_B] = matrix_of(p, GPB_B, b);
    g.x[GPB_C] = matrix_of(p, GPB_C, c);
    g.x[GPB_C].uplo = p->uplo ? p->uplo : 'G';
    gpb_test_settle(p->routine, &g);
    gpb_test_put_side(p->routine, &g, p->side, p->uplo);
    if (!p->row_major) return g;
    const gpb_matrix first = g.x[GPB_A];
    g.x[GPB_A] = g.x[GPB_B];
    g.x[GPB_B] = first;
    g.m = p->n;
    g.n = p->m;
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++)
        g.x[x].uplo = g.x[x].uplo == 'U' ? 'L' : g.x[x].uplo == 'L' ? 'U' : g.x[x].uplo;
    return g;
}
