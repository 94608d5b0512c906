/* SPDX-License-Identifier: MIT */
/* The reference judges right products to be right and wrong ones to be wrong, in all four types, for every
   routine of routine.def and every structure of A; and it computes with twice the precision of the type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problem.h"
#include "tests/unit/plain_product.h"

enum { MAX_BYTES = 16384, M = 13, N = 11, K = 17 };

typedef struct arrays {
    _Alignas(16) char a[MAX_BYTES], b[MAX_BYTES], c[MAX_BYTES], before[MAX_BYTES];
} arrays;
static arrays x;

/* Adds so much to a real number of a buffer. */
static void nudge(enum gpb_type type, void *at, int64_t which, double by)
{
    write_real(type, at, which, read_real(type, at, which) + by);
}

static char *first_of(const gpb_problem *p, char *allocation)
{
    return allocation + p->offset * (int64_t)gpb_type_bytes(p->type);
}

/* Operands of a problem, and the call on them. C is filled, and a copy of it kept. */
static gpb_call made(gpb_problem *p, gpb_scalar alpha, gpb_scalar beta)
{
    gpb_problem_lay_out(p);
    for (enum gpb_operand o = GPB_A; o < GPB_OPERANDS; o++)
        assert_true((size_t)(p->offset + gpb_problem_span(p, o)) * gpb_type_bytes(p->type) <= MAX_BYTES);
    gpb_problem_fill(p, GPB_A, x.a, 1);
    gpb_problem_fill(p, GPB_B, x.b, 2);
    gpb_problem_fill_c(p, beta, x.c);
    memcpy(x.before, x.c, MAX_BYTES);
    return gpb_problem_call(p, is_real(p->type) ? creal(alpha) : alpha, is_real(p->type) ? creal(beta) : beta,
                            first_of(p, x.a), first_of(p, x.b), first_of(p, x.c));
}

static double judge(const gpb_problem *p, const gpb_call *g)
{
    const size_t bytes = (size_t)gpb_problem_span(p, GPB_C) * gpb_type_bytes(p->type);
    return gpb_test_row_of(p->routine)->check(GPB_MATH_FMA, g, first_of(p, x.before), bytes);
}

/* ---- what is right is right, and what is a little wrong is wrong */

/* An element in the lower right corner, which every triangle has, both parts of it in turn. */
static void check_wrong_ones(const gpb_problem *p, const gpb_call *g)
{
    const int64_t i = g->m - 1, j = g->n - 1, at = i + j * g->x[GPB_C].ld;
    char *c = gpb_call_member(g, GPB_C, 0), *corner = c + at * (int64_t)gpb_call_element(g);
    char right[sizeof(double _Complex)];
    memcpy(right, corner, gpb_call_element(g));
    for (int part = 0; part < (is_real(p->type) ? 1 : 2); part++) {
        const gpb_reference_element e = gpb_reference_part(g, first_of(p, x.before), i, j, 0, part);
        nudge(p->type, corner, part, 2.1 * gpb_reference_bound(GPB_MATH_FMA, g, e));
        assert_true(judge(p, g) > 1);
        memcpy(corner, right, gpb_call_element(g));
        nudge(p->type, corner, part, NAN);
        assert_true(isinf(judge(p, g)));
        memcpy(corner, right, gpb_call_element(g));
    }
    c[(g->m + 1) * (int64_t)gpb_call_element(g) - 1] ^= 1;       /* the first column's padding */
    assert_true(isinf(judge(p, g)));
    c[(g->m + 1) * (int64_t)gpb_call_element(g) - 1] ^= 1;
    assert_true(judge(p, g) <= 1);
}

/* Sums of copied lines are those of the operands where they lie. */
static void check_lines(const gpb_call *g)
{
    gpb_reference_lines *lines = gpb_reference_lines_make(g, INT32_MAX);
    if (!lines) return;                              /* nothing to add up, or a CPU without AVX2 */
    const double unit = g->type == GPB_TYPE_s || g->type == GPB_TYPE_c ? 0x1p-52 : 0x1p-104;
    for (int64_t at = 0; at < g->m * g->n * g->batch; at++) {
        const int64_t i = at % g->m, j = at / g->m % g->n, l = at / g->m / g->n;
        gpb_reference_element one[GPB_REFERENCE_SUMS] = { { 0 } }, other[GPB_REFERENCE_SUMS] = { { 0 } };
        gpb_reference_sums(g, i, j, l, one);
        gpb_reference_lines_sums(lines, i, j, l, other);
        assert_int_equal(one[0].real, other[0].real);
        for (int x = 0; x < GPB_REFERENCE_SUMS; x++) {
            const double size = one[x].product;
            assert_true(fabs((one[x].value - other[x].value) + (one[x].rest - other[x].rest))
                        <= 4 * K * unit * size);
            assert_true(fabs(size - other[x].product) <= 4 * K * 0x1p-53 * size);
        }
    }
    gpb_reference_lines_free(lines);
}

static void test_products(void **state)
{
    (void)state;
    static const enum gpb_fill fills[] = { GPB_FILL_uniform, GPB_FILL_wide, GPB_FILL_integer,
                                           GPB_FILL_subnormal };
    for (int mix = 0; mix < 4 * GPB_TEST_ROUTINES * 9 * 2 * 2; mix++) {
        gpb_problem p = { .type = (enum gpb_type)(mix % 4),
                          .routine = (enum gpb_test_routine)(mix / 4 % GPB_TEST_ROUTINES),
                          .m = M,
                          .n = N,
                          .k = K,
                          .transa = "NTC"[mix / 16 % 3],
                          .transb = "NTc"[mix / 48 % 3],
                          .row_major = mix / 144 % 2,
                          .pad = 1 + mix % 3,
                          .offset = mix % 5,
                          .fill = fills[mix % 7 % 4] };
        if (gpb_test_has_triangle(p.routine)) {
            p.m = p.n;
            p.uplo = "UL"[mix % 2];
        }
        if (gpb_test_sided(p.routine)) {
            p.uplo = "UL"[mix / 48 % 2];
            p.side = "LR"[mix / 16 % 3 % 2];
        }
        const gpb_call g = made(&p, 0.7 - 1.25 * I, mix / 288 ? 0 : 1.3 + 0.5 * I);
        multiply(&g);
        assert_true(judge(&p, &g) <= 1);
        check_lines(&g);
        if (p.fill != GPB_FILL_subnormal) check_wrong_ones(&p, &g);
    }
}

/* Small integers are exact, so nothing but the one right answer has an error of 0. */
static void test_integers(void **state)
{
    (void)state;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++) {
        gpb_problem p = {
            .type = type, .m = M, .n = N, .k = K, .transa = 'C', .pad = 1, .fill = GPB_FILL_integer
        };
        const gpb_call g = made(&p, 2 - 3 * I, -1 + 2 * I);
        multiply(&g);
        assert_true(judge(&p, &g) == 0);
    }
}

/* The sample sees what the whole check sees outside the blocks, and a NaN inside. */
static void test_sample(void **state)
{
    (void)state;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++) {
        gpb_problem p = { .type = type, .m = M, .n = N, .k = K, .pad = 2 };
        const gpb_call g = made(&p, 1, 0);
        const size_t bytes = (size_t)gpb_problem_span(&p, GPB_C) * gpb_type_bytes(type);
        uint64_t seed = 1;
        char *c = gpb_call_member(&g, GPB_C, 0);
        assert_true(isinf(gpb_reference_sample(GPB_MATH_FMA, &g, x.before, bytes, N, &seed)));
        multiply(&g);
        assert_true(gpb_reference_sample(GPB_MATH_FMA, &g, x.before, bytes, 100, &seed) <= 1);
        c[(M + 1) * gpb_call_element(&g)] ^= 1;
        assert_true(isinf(gpb_reference_sample(GPB_MATH_FMA, &g, x.before, bytes, 1, &seed)));
    }
}

/* ---- twice the precision */

/* 1 + 2^-e - 1: nothing is left of 2^-e in a sum of one double where e is 70. */
static void test_precision(void **state)
{
    (void)state;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++)
        for (int part = 0; part < (is_real(type) ? 1 : 2); part++) {
            const double small = is_single(type) ? 0x1p-45 : 0x1p-95;
            gpb_problem p = { .type = type, .m = 1, .n = 1, .k = 3 };
            gpb_call g = made(&p, 1, 0);
            memset(x.a, 0, sizeof x.a);
            memset(x.b, 0, sizeof x.b);
            const int64_t step = is_real(type) ? 1 : 2;
            nudge(type, x.a, 0, 1);
            nudge(type, x.a, step, sqrt(small * 2));
            nudge(type, x.a, 2 * step, -1);
            nudge(type, x.b, part, 1);
            nudge(type, x.b, step + part, sqrt(small * 2) / 2);
            nudge(type, x.b, 2 * step + part, 1);
            const gpb_reference_element e = gpb_reference_part(&g, NULL, 0, 0, 0, part);
            assert_true(e.value + e.rest == small);
            assert_true(e.product == 2 || e.product == 2 + small);
        }
}

/* ---- structures: a matrix of which one triangle is stored, and the same one stored whole */

static double complex value_at(const void *base, enum gpb_type type, int64_t at)
{
    switch (type) {
#define TYPE(letter, ctype, bytes, flops, kind) \
    case GPB_TYPE_##letter: return (double complex)((const ctype *)base)[at];
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void set(void *base, enum gpb_type type, int64_t at, double complex value)
{
    const gpb_element e = gpb_element_of(type, value);
    memcpy((char *)base + at * (int64_t)gpb_type_bytes(type), &e, gpb_type_bytes(type));
}

/* Element (i, j) by the definition of the structure. */
static double complex defined(const gpb_matrix *a, enum gpb_type type, int64_t i, int64_t j)
{
    const bool is_there = a->uplo == 'U' ? i <= j : i >= j;
    const double complex here = value_at(a->base, type, i + j * a->ld),
                         there = value_at(a->base, type, j + i * a->ld);
    if (a->structure == GPB_TRIANGULAR) return i == j && a->diag == 'U' ? 1 : is_there ? here : 0;
    if (a->structure == GPB_SYMMETRIC) return is_there ? here : there;
    return i == j ? creal(here) : is_there ? here : conj(there);
}

static void test_structures(void **state)
{
    (void)state;
    static char whole[MAX_BYTES];
    for (int mix = 0; mix < 4 * 3 * 2 * 2 * 3; mix++) {
        const enum gpb_type type = (enum gpb_type)(mix % 4);
        gpb_problem p = { .type = type, .m = N, .n = M, .k = N, .transa = "NTC"[mix / 48], .pad = 1 };
        gpb_call g = made(&p, 1.5, 0.5), dense;
        gpb_matrix *a = &g.x[GPB_A];
        a->structure = (enum gpb_structure)(GPB_SYMMETRIC + mix / 4 % 3);
        a->uplo = "UL"[mix / 12 % 2];
        a->diag = "NU"[mix / 24 % 2];
        dense = g;
        for (int64_t j = 0; j < N; j++)
            for (int64_t i = 0; i < N; i++) set(whole, type, i + j * a->ld, defined(a, type, i, j));
        dense.x[GPB_A] = (gpb_matrix){ .base = whole, .ld = a->ld, .trans = a->trans };
        multiply(&dense);
        assert_true(judge(&p, &dense) <= 1);
        assert_true(judge(&p, &g) == judge(&p, &dense));
    }
}

/* ---- the table, fills and poison */

static void test_table(void **state)
{
    (void)state;
    const gpb_problem p = { .m = 5, .n = 7, .k = 3, .batch = 4, .type = GPB_TYPE_z };
    gpb_call g = gpb_problem_call(&p, 1, 0, NULL, NULL, NULL);
    assert_true(gpb_test_flops(GPB_TEST_gemm_batch_strided, &g) == 8 * 5 * 7 * 3 * 4);
    assert_true(gpb_test_bytes_read(GPB_TEST_gemm_batch, &g) == 16 * 4 * (5 * 3 + 3 * 7));
    g.beta = 1;
    assert_true(gpb_test_bytes_read(GPB_TEST_gemm_batch, &g) == 16 * 4 * (5 * 3 + 3 * 7 + 5 * 7));
    g.m = g.n;
    g.type = GPB_TYPE_s;
    assert_true(gpb_test_flops(GPB_TEST_gemmtr, &g) == 2 * 28 * 3 * 4);
    assert_true(gpb_test_bytes_written(GPB_TEST_gemmtr, &g) == 4 * 28 * 4);
    assert_true(gpb_test_has_triangle(GPB_TEST_gemmtr) && !gpb_test_has_triangle(GPB_TEST_gemm));
    g.beta = 0;
    assert_true(gpb_test_one_matrix(GPB_TEST_syrk) && !gpb_test_one_matrix(GPB_TEST_gemmtr));
    assert_true(gpb_test_flops(GPB_TEST_syrk, &g) == 2 * 28 * 3 * 4);
    assert_true(gpb_test_bytes_read(GPB_TEST_herk, &g) == 4 * 7 * 3 * 4);
    assert_true(gpb_test_flops(GPB_TEST_syr2k, &g) == 2 * 56 * 3 * 4);
    assert_true(gpb_test_bytes_read(GPB_TEST_her2k, &g) == 2 * 4 * 7 * 3 * 4);
    assert_true(gpb_test_sided(GPB_TEST_symm) && !gpb_test_sided(GPB_TEST_herk));
    g.m = 5;
    g.batch = 1;
    gpb_test_put_side(GPB_TEST_symm, &g, 'R', 'U');
    assert_true(g.k == 7 && gpb_test_flops(GPB_TEST_symm, &g) == 2 * 5 * 7 * 7);
    assert_true(gpb_test_bytes_read(GPB_TEST_symm, &g) == 4 * (5 * 7 + 7 * 8 / 2));
}

static void test_poison(void **state)
{
    (void)state;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++) {
        const size_t each = gpb_type_bytes(type);
        gpb_poison(type, x.a, 9);
        for (int64_t at = 0; at < 9; at++) assert_true(isnan(creal(value_at(x.a, type, at))));
        for (size_t at = 1; at < 9; at++) assert_true(memcmp(x.a, x.a + at * each, each) != 0);
        const double complex plain = is_real(type) ? NAN : NAN + NAN * I;
        set(x.b, type, 0, plain);
        assert_true(memcmp(x.a, x.b, each) != 0);
    }
}

/* How often each kind of number comes, of so many. */
static void test_fills(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    uint64_t seed = 1;
    int not_finite[GPB_FILLS] = { 0 }, whole[GPB_FILLS] = { 0 };
    for (enum gpb_fill fill = GPB_FILL_uniform; fill < GPB_FILLS; fill++)
        for (int i = 0; i < COUNT; i++) {
            const double value = gpb_fill_draw(fill, GPB_TYPE_s, &seed);
            not_finite[fill] += !isfinite(value);
            whole[fill] += value == rint(value);
        }
    assert_int_equal(not_finite[GPB_FILL_uniform] + not_finite[GPB_FILL_wide] + not_finite[GPB_FILL_wider],
                     0);
    assert_int_equal(whole[GPB_FILL_integer], COUNT);
    assert_in_range(not_finite[GPB_FILL_special], COUNT / 1500, COUNT / 500);
    assert_in_range(not_finite[GPB_FILL_hostile], COUNT / 60, COUNT / 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_integers), cmocka_unit_test(test_sample),
        cmocka_unit_test(test_precision), cmocka_unit_test(test_structures), cmocka_unit_test(test_table),
        cmocka_unit_test(test_poison), cmocka_unit_test(test_fills),
    };
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
