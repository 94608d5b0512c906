/* SPDX-License-Identifier: MIT */
/* SYMM and HEMM do not touch the triangle that is not stored, whose pages are forbidden; nor does it travel
   (test_other_triangle.c: nor does it matter that another thread writes there). Calls that have nothing to
   multiply touch neither operand. The trace names side and triangle as the caller did. Sums are of small
   integers, so that every result is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/gpublas.h"
#include "tests/gpu/placed.h"
#include "tests/gpu/trace.h"

enum { ORDER = 2048, OTHER = 10, PAGE = 4096 };

/* A matrix of floats or of complex ones, of which one triangle is stored. */
typedef struct symmetric {
    float *at;
    int order, others, reals;            /* others: columns of B and C, or rows; reals: of an element */
    char uplo;
} symmetric;

static bool is_stored(const symmetric *a, int row, int col)
{
    return a->uplo == 'U' ? row <= col : row >= col;
}

static float value(int row, int col, int part) { return (float)((row * 7 + col * 3 + part * 5) % 5 - 2); }

static float *place(const symmetric *a, int row, int col)
{
    return a->at + ((int64_t)row + (int64_t)col * a->order) * a->reals;
}

static size_t bytes_of(const symmetric *a)
{
    return (size_t)a->order * (size_t)a->order * (size_t)a->reals * sizeof *a->at;
}

/* Pages that hold nothing of the stored triangle are forbidden. */
static symmetric make(int order, int others, int reals, char uplo)
{
    symmetric a = { NULL, order, others, reals, uplo };
    a.at = mmap(NULL, bytes_of(&a), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(a.at != MAP_FAILED);
    for (int j = 0; j < order; j++)
        for (int i = 0; i < order; i++)
            for (int part = 0; part < reals && is_stored(&a, i, j); part++)
                place(&a, i, j)[part] = value(i, j, part);
    return a;
}

static void forbid(const symmetric *a)
{
    const int rows = PAGE / (int)sizeof *a->at / a->reals;
    int forbidden = 0;
    for (int j = 0; j < a->order; j++)
        for (int i = 0; i < a->order; i += rows) {
            if (is_stored(a, i, j) || is_stored(a, i + rows - 1, j)) continue;
            assert_int_equal(mprotect(place(a, i, j), PAGE, PROT_NONE), 0);
            forbidden++;
        }
    assert_true(forbidden >= a->order / 2);
}

/* One part of element (row, col) of the whole matrix. */
static float whole(const symmetric *a, int row, int col, int part)
{
    if (part && row == col) return 0;
    return is_stored(a, row, col) ? value(row, col, part) : (part ? -1 : 1) * value(col, row, part);
}

/* C = A B, or B A. */
static void call(const symmetric *a, bool right, const float *b, float *c)
{
    const int m = right ? a->others : a->order, n = right ? a->order : a->others, side = right ? RIGHT : LEFT,
              uplo = a->uplo == 'U' ? UPPER : LOWER;
    const float one[] = { 1, 0 }, zero[] = { 0, 0 };
    if (a->reals == 2)
        cblas_chemm(COLUMN_MAJOR, side, uplo, m, n, one, a->at, a->order, b, m, zero, c, m);
    else
        cblas_ssymm(COLUMN_MAJOR, side, uplo, m, n, 1, a->at, a->order, b, m, 0, c, m);
}

/* Element (i, x) of the product on the left; on the right it is the transpose. */
static bool is_right(const symmetric *a, bool right, const float *b, const float *c, int i, int x)
{
    const int m = right ? a->others : a->order;
    for (int part = 0; part < a->reals; part++) {
        double sum = 0;
        for (int p = 0; p < a->order; p++)
            sum += (double)whole(a, right ? p : i, right ? i : p, part)
                   * (double)b[(right ? x + (int64_t)p * m : p + (int64_t)x * m) * a->reals];
        const int64_t at = (right ? x + (int64_t)i * m : i + (int64_t)x * m) * a->reals + part;
        if ((double)c[at] != sum) return false;
    }
    return true;
}

static void test_forbidden(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        const symmetric a = make(ORDER, OTHER, 1 + form / 4, "UL"[form & 1]);
        const bool right = form & 2;
        const size_t count = (size_t)ORDER * OTHER * (size_t)a.reals;
        float *b = calloc(count, sizeof *b), *c = malloc(count * sizeof *c);
        assert_true(b && c);
        forbid(&a);
        for (size_t at = 0; at < count; at += (size_t)a.reals) b[at] = at / 3 % 3 ? 1 : 2;
        memset(c, 0xff, count * sizeof *c);
        const int64_t before = gpu_calls();
        call(&a, right, b, c);
        assert_int_equal(gpu_calls(), before + 1);
        for (int i = 0; i < ORDER; i += 31)
            for (int x = 0; x < OTHER; x++) assert_true(is_right(&a, right, b, c, i, x));
        free(b);
        free(c);
        munmap(a.at, bytes_of(&a));
    }
}

/* The first chunk of A has not all rows, because it is small. The third could have them, but begins in the
   middle. */
static void test_chunks(void **state)
{
    (void)state;
    enum { SMALL = 500, WIDE = 1100 };
    const symmetric a = make(SMALL, WIDE, 1, 'U');
    const size_t count = (size_t)SMALL * WIDE;
    float *b = malloc(count * sizeof *b), *c = malloc(count * sizeof *c);
    assert_true(b && c);
    for (size_t at = 0; at < count; at++) b[at] = at / 3 % 3 ? 1 : 2;
    const int64_t before = gpu_calls();
    call(&a, false, b, c);
    assert_int_equal(gpu_calls(), before + 1);
    for (int i = 0; i < SMALL; i++) assert_true(is_right(&a, false, b, c, i, i * 7 % WIDE));
    free(b);
    free(c);
    munmap(a.at, bytes_of(&a));
}

/* ---- the triangle alone travels */

/* Bytes up, of a call that must be right. */
static double bytes_up(placed *p, gpb_scalar alpha, gpb_scalar beta)
{
    gpublas_stats_t before, after;
    gpublas_stats(&before, sizeof before);
    assert_true(placed_try(p, alpha, beta, GPB_MATH_FMA));
    gpublas_stats(&after, sizeof after);
    assert_int_equal(after.gpu_calls, before.gpu_calls + 1);
    return (double)(after.bytes_to_gpu - before.bytes_to_gpu);
}

/* In one strip and in several, the last one narrower, beside other operands in every place. A pinned triangle
   goes through the ring, too. */
static void test_triangle_alone(void **state)
{
    (void)state;
    enum { ORDERS = 4, FORMS = 4 * 8 * ORDERS };
    static const int order[ORDERS] = { 1029, 513, 640, 1300 }, others[ORDERS] = { 270, 33, 300, 21 };
    static const gpb_scalar beta[] = { 0, 1, 0.5 - 2.0i };
    const int step = getenv("GPB_TEST_LARGE") ? 1 : 3;
    for (int i = 0; i < FORMS; i += step) {
        const int which = i % ORDERS, form = i / ORDERS, n = order[which];
        const enum gpb_type type = (enum gpb_type)(form / 8);
        const bool right = form & 1, is_hermitian = gpb_type_is_complex(type) && (form & 4 || which & 1);
        placed p = { .of = { .routine = is_hermitian ? GPB_TEST_hemm : GPB_TEST_symm, .type = type,
                             .m = right ? others[which] : n, .n = right ? n : others[which],
                             .uplo = "UL"[form >> 1 & 1], .side = "LR"[right], .row_major = (form + i) & 4,
                             .pad = i / 2 % 3, .offset = i % 2, .fill = i % 8 == 3 ? GPB_FILL_wide : 0 } };
        const enum gpb_operand a = right ? GPB_B : GPB_A;
        p.at[a] = i % 7 == 2 ? PLACE_PINNED : PLACE_PAGEABLE;
        p.at[!a] = i % 5 == 1 ? PLACE_PINNED : i % 5 == 2 ? PLACE_DEVICE : PLACE_PAGEABLE;
        p.at[GPB_C] = i % 6 == 1 ? PLACE_PINNED : PLACE_PAGEABLE;
        placed_make(&p);
        const double e = (double)gpb_type_bytes(type), all = e * n * n, b = e * n * others[which],
                     up = bytes_up(&p, -0.5 + 0.25i, beta[i / ORDERS % 3])
                          - (p.at[!a] == PLACE_DEVICE ? 0 : b);
        /* Columns go in steps of 256 rows. */
        if (all >= 0x1p20) assert_true(up >= all / 2 && up <= all / 2 + e * n * 256);
        else assert_true(up == all);
        placed_free(&p);
    }
}

/* ---- nothing to multiply */

static void test_not_referenced(void **state)
{
    (void)state;
    const float kept[] = { 3, 5, 7, 9 }, half[] = { 1.5f, 2.5f, 3.5f, 4.5f }, none[4] = { 0 };
    for (int form = 0; form < 8; form++) {
        const int side = form & 1 ? RIGHT : LEFT, uplo = form & 2 ? UPPER : LOWER,
                  order = form & 4 ? ROW_MAJOR : COLUMN_MAJOR;
        float c[4];
        memcpy(c, kept, sizeof c);
        cblas_ssymm(order, side, uplo, 0, 2, 1, NULL, 2, NULL, 2, 0, c, 2);
        cblas_ssymm(order, side, uplo, 2, 0, 1, NULL, 2, NULL, 2, 0, c, 2);
        cblas_ssymm(order, side, uplo, 2, 2, 0, NULL, 2, NULL, 2, 1, c, 2);
        assert_memory_equal(c, kept, sizeof c);
        cblas_ssymm(order, side, uplo, 2, 2, 0, NULL, 2, NULL, 2, 0.5f, c, 2);
        assert_memory_equal(c, half, sizeof c);
        memset(c, 0xff, sizeof c);
        cblas_ssymm(order, side, uplo, 2, 2, 0, NULL, 2, NULL, 2, 0, c, 2);
        assert_memory_equal(c, none, sizeof c);
    }
}

/* ---- the line of a call */

static void expect(const char *trace, const char *key, const char *wanted)
{
    char value[64];
    assert_string_equal(trace_value(trace, key, value, sizeof value), wanted);
}

/* Side, triangle and operands as the caller named them, in both orders. */
static void test_trace(void **state)
{
    (void)state;
    enum { SMALL = 8 };
    float a[SMALL * SMALL] = { 0 }, b[SMALL * SMALL] = { 0 }, c[SMALL * SMALL];
    for (int form = 0; form < 8; form++) {
        const bool rows = form & 1, right = form & 2, upper = form & 4;
        trace_begin();
        cblas_ssymm(rows ? ROW_MAJOR : COLUMN_MAJOR, right ? RIGHT : LEFT, upper ? UPPER : LOWER, 3, 5, 1, a,
                    6, b, 7, 0, c, 8);
        const char *trace = trace_end();
        expect(trace, "order", rows ? "row" : "col");
        expect(trace, "side", right ? "R" : "L");
        expect(trace, "uplo", upper ? "U" : "L");
        expect(trace, "m", "3");
        expect(trace, "n", "5");
        expect(trace, "k", right ? "5" : "3");
        expect(trace, "lda", "6");
        expect(trace, "ldb", "7");
        expect(trace, "ldc", "8");
        expect(trace, "route", "gpu");
    }
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_forbidden), cmocka_unit_test(test_chunks),
                                        cmocka_unit_test(test_triangle_alone),
                                        cmocka_unit_test(test_not_referenced),
                                        cmocka_unit_test(test_trace) };
    return cmocka_run_group_tests_name("symmetric", tests, NULL, NULL);
}
