/* SPDX-License-Identifier: MIT */
/* TRSM and TRMM by halves, down to triangles of one row, and TRMM by levels: in every type, on each side, of
   each triangle, with each letter and diagonal. The answer of TRSM solves the system as well as substitution
   does, and that of TRMM is the product. Neither the other triangle nor a unit diagonal is read: there are
   NaNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/factor.h"
#include "dispatch/halves.h"
#include "dispatch/resident.h"
#include "dispatch/triangular.h"
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
static double complex triangle_at(const gpb_triangular *t, int64_t i, int64_t j)
{
    const int64_t row = t->trans == 'N' ? i : j, col = t->trans == 'N' ? j : i;
    if (row == col && t->diag == 'U') return 1;
    if (t->uplo == 'U' ? row > col : row < col) return 0;
    const double complex value = get(t->type, t->a, row + col * t->lda);
    return t->trans == 'C' ? conj(value) : value;
}

static double pseudo(int i) { return (double)(i * 7919 % 1009) / 504.5 - 1; }

static void fill(gpb_triangular *t)
{
    const int64_t order = gpb_triangular_order(t);
    for (int i = 0; i < REALS / 2; i++) {
        put(t->type, a, i, NAN);
        put(t->type, b, i, pseudo(i) + I * pseudo(3 * i + 1));
    }
    for (int64_t col = 0; col < order; col++)
        for (int64_t row = 0; row < order; row++) {
            const bool inside = t->uplo == 'U' ? row < col : row > col;
            const int seed = (int)(row * 31 + col);
            if (inside) put(t->type, a, row + col * t->lda, (pseudo(seed) + I * pseudo(seed + 5)) / 8);
            if (row == col && t->diag == 'N') put(t->type, a, row + col * t->lda, 1.5 + pseudo(seed) / 2);
        }
    memcpy(x, b, sizeof x);
    t->a = a;
    t->b = x;
}

static void by_halves(const gpb_triangular *t)
{
    if (gpb_triangular_order(t) > 1) {
        const gpb_triangular_halves halves = gpb_triangular_halve(t);
        assert_int_equal(gpb_triangular_order(&halves.first) + gpb_triangular_order(&halves.second),
                         gpb_triangular_order(t));
        by_halves(&halves.first);
        multiply(&halves.product);
        by_halves(&halves.second);
        return;
    }
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->m; i++) {
            const int64_t at = i + j * t->ldb;
            const double complex right = (double complex)t->alpha * get(t->type, t->b, at),
                                 pivot = triangle_at(t, 0, 0);
            put(t->type, t->b, at, t->solves ? right / pivot : right * pivot);
        }
}

/* From b to x: triangles of that order, and the levels above them. */
static void by_levels(const gpb_triangular *t, int64_t least)
{
    const int64_t order = gpb_triangular_order(t);
    const bool left = t->side == 'L';
    gpb_triangular was = *t;
    was.b = b;
    memcpy(x, b, sizeof x);
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->m; i++) {
            const int64_t own = left ? i : j, first = own / least * least, last = min(order, first + least);
            double complex sum = 0;
            for (int64_t p = first; p < last; p++) {
                const double complex of_a = left ? triangle_at(t, i, p) : triangle_at(t, p, j);
                const double complex of_b = get(t->type, b, left ? p + j * t->ldb : i + p * t->ldb);
                if (of_a != 0) sum += of_a * of_b;
            }
            put(t->type, x, i + j * t->ldb, (double complex)t->alpha * sum);
        }
    for (int64_t half = least; half < order; half *= 2) {
        gpb_call products[2];
        const int count = gpb_triangular_level(t, &was, half, products);
        assert_true(count >= 1);
        for (int i = 0; i < count; i++)
            for (int64_t member = 0; member < products[i].batch; member++) {
                gpb_call one = products[i];
                for (int o = 0; o < GPB_OPERANDS; o++)
                    one.x[o].base = gpb_call_member(&products[i], (enum gpb_operand)o, member);
                one.batch = 1;
                multiply(&one);
            }
    }
}

/* X is what became of B. TRSM: |op(A) X - alpha B| <= (order + 8) u (|op(A)| |X| + |alpha B|), some times
   more for complex numbers. TRMM: |X - alpha op(A) B| <= (order + 8) u |alpha op(A)| |B|, likewise. */
static void check(const gpb_triangular *t)
{
    const int64_t order = gpb_triangular_order(t);
    const bool left = t->side == 'L';
    const double u = is_single(t->type) ? 0x1p-24 : 0x1p-53;
    const double complex alpha = (double complex)t->alpha;
    const double *factor = t->solves ? x : b;
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->m; i++) {
            double complex sum = 0;
            double size = 0;
            for (int64_t p = 0; p < order; p++) {
                const double complex of_a = left ? triangle_at(t, i, p) : triangle_at(t, p, j);
                const double complex of_x = get(t->type, factor, left ? p + j * t->ldb : i + p * t->ldb);
                if (of_a == 0) continue;
                sum += of_a * of_x;
                size += cabs(of_a) * cabs(of_x);
            }
            const double complex before = get(t->type, b, i + j * t->ldb),
                                 after = get(t->type, x, i + j * t->ldb),
                                 found = t->solves ? sum : after, wanted = alpha * (t->solves ? before : sum);
            const double scale = t->solves ? size + cabs(wanted) : cabs(alpha) * size;
            assert_true(cabs(found - wanted) <= 4 * (double)(order + 8) * u * scale);
        }
}

static void every_triangle(void **state)
{
    (void)state;
    static const int sizes[][2] = { { 1, 5 }, { 2, 3 }, { 7, 4 }, { 16, 1 }, { 33, 6 }, { 40, 40 } };
    int count = 0;
    for (enum gpb_type type = GPB_TYPE_s; type < GPB_TYPES; type++)
        for (int mix = 0; mix < 48; mix++)
            for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
                const char side = "LR"[mix % 2];
                gpb_triangular t = { .solves = mix >= 24, .type = type, .width = 32, .side = side,
                                     .uplo = "UL"[mix / 2 % 2], .diag = "NU"[mix / 4 % 2],
                                     .trans = "NTC"[mix / 8 % 3], .m = sizes[z][side == 'R'],
                                     .n = sizes[z][side == 'L'],
                                     .alpha = is_real(type) ? 0.5 : 0.5 - 0.25 * I };
                t.lda = gpb_triangular_order(&t) + PAD;
                t.ldb = t.m + PAD;
                fill(&t);
                assert_true(gpb_triangular_legal(&t));
                by_halves(&t);
                check(&t);
                for (int64_t least = 1; least < 9 && !t.solves; least += 3) {
                    by_levels(&t, least);
                    check(&t);
                }
                for (int64_t j = 0; j < t.n; j++)                     /* between the columns of B */
                    for (int64_t i = t.m; i < t.ldb; i++)
                        assert_true(get(type, x, i + j * t.ldb) == get(type, b, i + j * t.ldb));
                count++;
            }
    assert_int_equal(count, 4 * 48 * 6);
}

static void illegal(void **state)
{
    (void)state;
    const gpb_triangular right = { .side = 'R', .uplo = 'U', .trans = 'N', .diag = 'N', .m = 3, .n = 5,
                                   .lda = 5, .ldb = 3 };
    assert_true(gpb_triangular_legal(&right));
    for (int i = 0; i < 8; i++) {
        gpb_triangular wrong = right;
        char *const letters[] = { &wrong.side, &wrong.uplo, &wrong.trans, &wrong.diag };
        int64_t *const sizes[] = { &wrong.m, &wrong.n, &wrong.lda, &wrong.ldb };
        if (i < 4) *letters[i] = 0;
        else if (i < 6) *sizes[i - 4] = -1;
        else --*sizes[i - 4];
        assert_false(gpb_triangular_legal(&wrong));
    }
}

/* Small triangles are the host's, but for those that tests want to see. */
static void leaves(void **state)
{
    (void)state;
    assert_int_equal(gpb_halves_leaf(100, GPB_OFFLOAD_AUTO), 256);
    assert_int_equal(gpb_halves_leaf(100, GPB_OFFLOAD_ALWAYS), 16);
    assert_int_equal(gpb_halves_leaf(100000, GPB_OFFLOAD_ALWAYS), 256);
    const gpb_triangular t = { .solves = true, .side = 'L', .uplo = 'L', .trans = 'N', .diag = 'N',
                               .m = 5000, .n = 10 };
    const gpb_triangular_halves halves = gpb_triangular_halve(&t);
    assert_int_equal(halves.first.m, 2560);                            /* whole tiles */
    assert_int_equal(halves.product.k, 2560);
}

/* ---- Cholesky by panels: what a cut leaves to be done, element by element */

enum { LD = 1800 };

static const double panel_of[1];                     /* never read: its elements are counted */

static int64_t row_at(const void *p) { return ((const char *)p - (const char *)panel_of) / 8 % LD; }
static int64_t col_at(const void *p) { return ((const char *)p - (const char *)panel_of) / 8 / LD; }

/* Counts what the product adds to, with the panel of U as that of L on its side. */
static void count(const gpb_call *g, bool lower, unsigned char *times)
{
    const int64_t row = row_at(g->x[GPB_C].base), col = col_at(g->x[GPB_C].base);
    const bool triangle = g->x[GPB_C].uplo != 'G';
    assert_int_equal(g->routine, triangle ? GPB_ROUTINE_SYRK : GPB_ROUTINE_GEMM);
    assert_int_equal(lower ? row_at(g->x[GPB_A].base) : col_at(g->x[GPB_A].base), row);
    assert_int_equal(lower ? row_at(g->x[GPB_B].base) : col_at(g->x[GPB_B].base), col);
    assert_int_equal(lower ? col_at(g->x[GPB_A].base) : row_at(g->x[GPB_A].base), 0);
    assert_int_equal(g->x[GPB_A].trans, lower ? 'N' : 'T');
    assert_int_equal(g->x[GPB_B].trans, lower ? 'T' : 'N');
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++)
            if (!triangle || (lower ? i >= j : i <= j))
                times[lower ? row + i + (col + j) * LD : col + j + (row + i) * LD]++;
}

static void panels(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 300, 0 }, { 300, 500 }, { 1700, 0 }, { 1700, 1 }, { 1700, 90 } };
    unsigned char *times = malloc(LD * LD);
    int in_two = 0;
    assert_non_null(times);
    for (int how = 0; how < 10; how++) {
        const bool lower = how % 2;
        const int64_t n = sizes[how / 2][0], m = n + sizes[how / 2][1], half = gpb_halves_first(n);
        const gpb_factor f = { .type = GPB_TYPE_d, .width = 32, .uplo = lower ? 'L' : 'U', .m = m, .n = n,
                               .a = (void *)(uintptr_t)panel_of, .lda = LD };
        const gpb_factor_halves to = gpb_factor_halve_panel(&f);
        assert_int_equal(to.first.m, m);
        assert_int_equal(to.first.n, half);
        assert_int_equal(to.second.m, m - half);
        assert_int_equal(to.second.n, n - half);
        assert_int_equal(row_at(to.second.a) + LD * col_at(to.second.a), half + LD * half);
        memset(times, 0, LD * LD);
        count(&to.product, lower, times);
        assert_int_equal(to.product.k, half);
        if (to.beyond.m) {
            count(&to.beyond, lower, times);
            assert_int_equal(to.beyond.k, half);
            in_two++;
        }
        /* Once below the diagonal; beside it at most in the block's other triangle. */
        for (int64_t j = 0; j < LD; j++)
            for (int64_t i = 0; i < LD; i++) {
                const bool inside = i >= half && i < m && j >= half && j < n;
                if (!inside || i >= j) assert_int_equal(times[i + j * LD], inside);
            }
    }
    assert_int_equal(in_two, 4);
    free(times);
}

/* A launch may read A before the one before it has ended only where no launch writes to A. */
static void only_reads_a(void **state)
{
    (void)state;
    const gpb_triangular t = { .solves = true, .type = GPB_TYPE_d, .side = 'L', .uplo = 'L', .trans = 'N',
                               .diag = 'N', .m = 512, .n = 512, .alpha = 1, .lda = 512, .ldb = 512 };
    const gpb_resident solve = gpb_resident_of_triangular(&t), inverse = gpb_resident_of_inverse(&t),
                       by_factors = { .system = solve.system, .solves = true },
                       factors = { .system = solve.system, .factors = true, .solves = true };
    assert_true(gpb_resident_only_reads_a(&solve) && gpb_resident_only_reads_a(&by_factors));
    assert_false(gpb_resident_only_reads_a(&inverse) || gpb_resident_only_reads_a(&factors));
}

/* B's panels begin where tensor copies can read them, and are no more than a carry has room for. From the
   left they are of columns, from the right of rows. */
static void panels_of_b(void **state)
{
    (void)state;
    for (int64_t order = 1; order < 40000; order += order / 7 + 1)
        for (int64_t others = 1; others < 40000; others += others / 5 + 1)
            for (int how = 0; how < 4; how++) {
                const bool left = how & 1;
                const gpb_triangular t = { .solves = how & 2, .type = GPB_TYPE_d, .side = left ? 'L' : 'R',
                                           .uplo = 'U', .trans = 'N', .diag = 'N',
                                           .m = left ? order : others, .n = left ? others : order,
                                           .alpha = 1, .lda = order, .ldb = left ? order : others };
                const gpb_resident work = gpb_resident_of_triangular(&t);
                const gpb_resident_panels panels = gpb_resident_cut(&work);
                assert_true(gpb_resident_by_rows(&work) == !left);
                assert_in_range(panels.count, 1, GPB_RESIDENT_PANELS);
                assert_int_equal(panels.first[0], 0);
                for (int x = 0; x < panels.count; x++)
                    assert_true(panels.first[x] % 64 == 0 && panels.first[x] < panels.first[x + 1]);
                assert_int_equal(panels.first[panels.count], others);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_triangle), cmocka_unit_test(illegal),
                                        cmocka_unit_test(leaves), cmocka_unit_test(panels),
                                        cmocka_unit_test(only_reads_a), cmocka_unit_test(panels_of_b) };
    return cmocka_run_group_tests_name("triangular", tests, NULL, NULL);
}
