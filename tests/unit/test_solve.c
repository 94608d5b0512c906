/* SPDX-License-Identifier: MIT */
/* TRSM by halves, down to triangles of one row: in every type, on each side, of each triangle, with each
   letter and diagonal. The answer solves the system as well as substitution does, and neither the other
   triangle nor a unit diagonal is read: there are NaNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/solve.h"
#include "tests/unit/plain_product.h"

enum { MOST = 40, PAD = 3, REALS = 2 * (MOST + PAD) * MOST };

static double a[REALS], b[REALS], x[REALS];          /* large enough for any type */

static double complex get(enum gpb_type type, const void *at, int64_t i)
{
    if (is_real(type)) return read_real(type, at, i);
    return read_real(type, at, 2 * i) + I * read_real(type, at, 2 * i + 1);
}

static void put(enum gpb_type type, void *at, int64_t i, double complex value)
{
    if (is_real(type)) {
        write_real(type, at, i, creal(value));
        return;
    }
    write_real(type, at, 2 * i, creal(value));
    write_real(type, at, 2 * i + 1, cimag(value));
}

/* Element (i, j) of op(A), in a triangle of its own. */
static double complex triangle_at(const gpb_solve *s, int64_t i, int64_t j)
{
    const int64_t row = s->trans == 'N' ? i : j, col = s->trans == 'N' ? j : i;
    if (row == col && s->diag == 'U') return 1;
    if (s->uplo == 'U' ? row > col : row < col) return 0;
    const double complex value = get(s->type, s->a, row + col * s->lda);
    return s->trans == 'C' ? conj(value) : value;
}

static double pseudo(int i) { return (double)(i * 7919 % 1009) / 504.5 - 1; }

static void fill(gpb_solve *s)
{
    const int64_t order = gpb_solve_order(s);
    for (int i = 0; i < REALS / 2; i++) {
        put(s->type, a, i, NAN);
        put(s->type, b, i, pseudo(i) + I * pseudo(3 * i + 1));
    }
    for (int64_t col = 0; col < order; col++)
        for (int64_t row = 0; row < order; row++) {
            const bool inside = s->uplo == 'U' ? row < col : row > col;
            const int seed = (int)(row * 31 + col);
            if (inside) put(s->type, a, row + col * s->lda, (pseudo(seed) + I * pseudo(seed + 5)) / 8);
            if (row == col && s->diag == 'N') put(s->type, a, row + col * s->lda, 1.5 + pseudo(seed) / 2);
        }
    memcpy(x, b, sizeof x);
    s->a = a;
    s->b = x;
}

static void by_halves(const gpb_solve *s)
{
    if (gpb_solve_order(s) > 1) {
        const gpb_solve_halves halves = gpb_solve_halve(s);
        assert_int_equal(gpb_solve_order(&halves.first) + gpb_solve_order(&halves.second),
                         gpb_solve_order(s));
        by_halves(&halves.first);
        multiply(&halves.product);
        by_halves(&halves.second);
        return;
    }
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t i = 0; i < s->m; i++) {
            const int64_t at = i + j * s->ldb;
            const double complex right = (double complex)s->alpha * get(s->type, s->b, at);
            put(s->type, s->b, at, right / triangle_at(s, 0, 0));
        }
}

/* |op(A) X - alpha B| <= (order + 8) u (|op(A)| |X| + |alpha B|), some times more for complex numbers. */
static void check(const gpb_solve *s)
{
    const int64_t order = gpb_solve_order(s);
    const bool left = s->side == 'L';
    const double u = is_single(s->type) ? 0x1p-24 : 0x1p-53;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t i = 0; i < s->m; i++) {
            double complex sum = 0;
            double size = 0;
            for (int64_t p = 0; p < order; p++) {
                const double complex of_a = left ? triangle_at(s, i, p) : triangle_at(s, p, j);
                const double complex of_x = get(s->type, x, left ? p + j * s->ldb : i + p * s->ldb);
                if (of_a == 0) continue;
                sum += of_a * of_x;
                size += cabs(of_a) * cabs(of_x);
            }
            const double complex wanted = (double complex)s->alpha * get(s->type, b, i + j * s->ldb);
            assert_true(cabs(sum - wanted) <= 4 * (double)(order + 8) * u * (size + cabs(wanted)));
        }
}

static void every_triangle(void **state)
{
    (void)state;
    static const int sizes[][2] = { { 1, 5 }, { 2, 3 }, { 7, 4 }, { 16, 1 }, { 33, 6 }, { 40, 40 } };
    int count = 0;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++)
        for (int mix = 0; mix < 24; mix++)
            for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
                const char side = "LR"[mix % 2];
                gpb_solve s = { .type = type, .width = 32, .side = side, .uplo = "UL"[mix / 2 % 2],
                                .diag = "NU"[mix / 4 % 2], .trans = "NTC"[mix / 8],
                                .m = sizes[z][side == 'R'], .n = sizes[z][side == 'L'],
                                .alpha = is_real(type) ? 0.5 : 0.5 - 0.25 * I };
                s.lda = gpb_solve_order(&s) + PAD;
                s.ldb = s.m + PAD;
                fill(&s);
                assert_true(gpb_solve_legal(&s));
                by_halves(&s);
                check(&s);
                for (int64_t j = 0; j < s.n; j++)                     /* between the columns of B */
                    for (int64_t i = s.m; i < s.ldb; i++)
                        assert_true(get(type, x, i + j * s.ldb) == get(type, b, i + j * s.ldb));
                count++;
            }
    assert_int_equal(count, 4 * 24 * 6);
}

static void illegal(void **state)
{
    (void)state;
    const gpb_solve right = { .side = 'R', .uplo = 'U', .trans = 'N', .diag = 'N', .m = 3, .n = 5, .lda = 5,
                              .ldb = 3 };
    assert_true(gpb_solve_legal(&right));
    for (int i = 0; i < 8; i++) {
        gpb_solve wrong = right;
        char *const letters[] = { &wrong.side, &wrong.uplo, &wrong.trans, &wrong.diag };
        int64_t *const sizes[] = { &wrong.m, &wrong.n, &wrong.lda, &wrong.ldb };
        if (i < 4) *letters[i] = 0;
        else if (i < 6) *sizes[i - 4] = -1;
        else --*sizes[i - 4];
        assert_false(gpb_solve_legal(&wrong));
    }
}

/* Small triangles are the host's, but for those that tests want to see. */
static void leaves(void **state)
{
    (void)state;
    gpb_solve s = { .side = 'L', .m = 100, .n = 100 };
    assert_int_equal(gpb_solve_leaf(&s, GPB_OFFLOAD_AUTO), 512);
    assert_int_equal(gpb_solve_leaf(&s, GPB_OFFLOAD_ALWAYS), 32);
    s.m = 100000;
    assert_int_equal(gpb_solve_leaf(&s, GPB_OFFLOAD_ALWAYS), 512);
    s = (gpb_solve){ .side = 'L', .uplo = 'L', .trans = 'N', .diag = 'N', .m = 5000, .n = 10 };
    const gpb_solve_halves halves = gpb_solve_halve(&s);
    assert_int_equal(halves.first.m, 2560);                            /* whole tiles */
    assert_int_equal(halves.product.k, 2560);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_triangle), cmocka_unit_test(illegal),
                                        cmocka_unit_test(leaves) };
    return cmocka_run_group_tests_name("solve", tests, NULL, NULL);
}
