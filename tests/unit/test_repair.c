/* SPDX-License-Identifier: MIT */
/* The host's share of a call with a symmetric or Hermitian operand: a rectangle of C and a part of k, with
   all the memory that it wants, with little, and with none. What is not stored of the operand is NaN. And of
   SYR2K and HER2K: both products, of all of C and of the columns that are not home yet; of a batch of
   systems, of which some members and columns are home; and the blocks of a triangle that a guarded kernel
   left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fill.h"
#include "tests/routine.h"
#include "tests/unit/plain_product.h"

static size_t limit;                     /* bytes that malloc gives at once */
static void *limited(size_t bytes) { return bytes <= limit ? malloc(bytes) : NULL; }
#define malloc limited
#include "src/run/repair.c"
#undef malloc

static int products;

void gpb_host_gemm(const gpb_call *call)
{
    gpb_call plain = *call;
    plain.x[GPB_A].structure = plain.x[GPB_B].structure = plain.x[GPB_C].structure = GPB_GENERAL;
    plain.x[GPB_C].uplo = 'G';           /* which the host's GEMM does not know */
    plain.routine = GPB_ROUTINE_GEMM;
    multiply(&plain);
    products++;
}
/* The systems that the host was asked for. */
static struct { gpb_triangular of; int64_t done; } asked[8];
static int asked_for;
void gpb_host_triangular_rest(const gpb_triangular *t, int64_t done)
{
    assert_true(asked_for < 8);
    asked[asked_for].of = *t;
    asked[asked_for++].done = done;
}
enum gpb_place gpb_place_of(const void *pointer)
{
    (void)pointer;
    return GPB_PLACE_HOST;
}
bool gpb_host_readable(const void *pointer) { return pointer != NULL; }
CUresult gpb_dma_copy_and_wait(const gpb_dma_shape *panel, const void *gpu, void *host, bool fetch)
{
    (void)panel, (void)gpu, (void)host, (void)fetch;
    return CUDA_ERROR_UNKNOWN;
}

enum { ROWS = 300, COLS = 60, LD = 303, BYTES = LD * ROWS * 16 };
static _Alignas(16) char a[BYTES], b[BYTES], c[BYTES], wanted[BYTES];

/* All of a symmetric or Hermitian matrix. */
static char dense[BYTES];
static void make_dense(const gpb_call *g, const gpb_matrix *of)
{
    const int64_t e = (int64_t)gpb_call_element(g);
    for (int64_t col = 0; col < g->k; col++)
        for (int64_t row = 0; row < g->k; row++) {
            const bool image = is_image(of, row, col);
            const char *from = (const char *)of->base + (image ? col + row * LD : row + col * LD) * e;
            char *to = dense + (row + col * LD) * e;
            memcpy(to, from, (size_t)e);
            if (of->structure != GPB_HERMITIAN) continue;
            if (row == col) gpb_type_make_real(g->type, to);
            else if (image) write_real(g->type, to, 1, -read_real(g->type, from, 1));
        }
}

/* A rectangle of C from k = [p, p + k) is what a call gives whose operands begin there. */
static void check(gpb_call g, enum gpb_operand symmetric, int64_t p, int64_t k)
{
    const int64_t i = 1, j = 2, rows = g.m - 4, cols = g.n - 5, e = (int64_t)gpb_call_element(&g);
    gpb_call part = g;
    make_dense(&g, &g.x[symmetric]);
    part.x[symmetric] = (gpb_matrix){ .base = dense, .ld = LD, .trans = 'N' };
    part.x[GPB_A].base = (const char *)part.x[GPB_A].base + (i + p * LD) * e;
    part.x[GPB_B].base = (const char *)part.x[GPB_B].base + (p + j * LD) * e;
    part.x[GPB_C].base = wanted + (i + j * LD) * e;
    part.m = rows;
    part.n = cols;
    part.k = k;
    memcpy(wanted, c, BYTES);
    multiply(&part);
    const member x = { .call = &g, .at = { (char *)(uintptr_t)g.x[GPB_A].base,
                                           (char *)(uintptr_t)g.x[GPB_B].base, c },
                       .ld = { LD, LD, LD }, .p = p, .k = k, .beta = g.beta };
    rectangle(&x, i, rows, j, cols);
    assert_memory_equal(c, wanted, BYTES);
}

static void test_rectangles(void **state)
{
    (void)state;
    static const size_t limits[] = { SIZE_MAX, 20000, 5000, 0 };
    uint64_t seed = 1;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int form = 0; form < 32; form++) {
            const enum gpb_test_routine routine = form & 1 ? GPB_TEST_hemm : GPB_TEST_symm;
            const bool right = form & 2;
            gpb_call g = { .type = type, .m = right ? COLS : ROWS, .n = right ? ROWS : COLS, .batch = 1,
                           .alpha = 2, .beta = 3,
                           .x = { { .base = a, .ld = LD },
                                  { .base = b, .ld = LD },
                                  { .base = c, .ld = LD } } };
            const enum gpb_operand symmetric = right ? GPB_B : GPB_A;
            const int64_t count = BYTES / (int64_t)gpb_type_bytes(type);
            if (routine == GPB_TEST_hemm && is_real(type)) continue;
            gpb_test_put_side(routine, &g, right ? 'R' : 'L', form & 4 ? 'U' : 'L');
            gpb_fill(GPB_FILL_integer, type, a, count, &seed);
            gpb_fill(GPB_FILL_integer, type, b, count, &seed);
            gpb_fill(GPB_FILL_integer, type, c, count, &seed);
            gpb_test_poison_mirror(&g, symmetric);
            limit = limits[form / 8];
            products = 0;
            check(g, symmetric, form & 1 ? 0 : 100, form & 1 ? ROWS : 150);
            /* One product, or as many as the memory makes pieces. */
            assert_true(limit == SIZE_MAX ? products == 1 : products > 2);
        }
}

/* Of SYR2K both products are the host's, in all columns or only in those that are not home. */
static void test_two_products(void **state)
{
    (void)state;
    enum { N = 50, K = 30 };
    const gpb_facts facts = { 0 };
    uint64_t seed = 2;
    limit = SIZE_MAX;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int form = 0; form < 16; form++) {
            const bool hermitian = form & 1, down = form & 2;
            const char other = hermitian ? 'C' : 'T';
            const int64_t count = BYTES / (int64_t)gpb_type_bytes(type), home = form & 8 ? 20 : 0;
            gpb_call g = { .routine = GPB_ROUTINE_SYR2K, .type = type, .m = N, .n = N, .k = K, .batch = 1,
                           .alpha = is_real(type) ? 2 : 2 - 3i, .beta = 3,
                           .x = { { .base = a, .ld = LD, .trans = down ? other : 'N' },
                                  { .base = b, .ld = LD - 1, .trans = down ? 'N' : other },
                                  { .base = c, .ld = LD, .trans = 'N', .uplo = form & 4 ? 'U' : 'L',
                                    .structure = hermitian ? GPB_HERMITIAN : GPB_SYMMETRIC } } };
            const size_t done = (size_t)(home * LD) * gpb_type_bytes(type);
            if (hermitian && is_real(type)) continue;
            gpb_fill(GPB_FILL_integer, type, a, count, &seed);
            gpb_fill(GPB_FILL_integer, type, b, count, &seed);
            gpb_fill(GPB_FILL_integer, type, c, count, &seed);
            memcpy(wanted, c, BYTES);
            g.x[GPB_C].base = wanted;
            multiply(&g);
            memcpy(c, wanted, done);
            g.x[GPB_C].base = c;
            gpb_job job = { .call = &g, .facts = &facts, .progress.cols = home };
            assert_true(gpb_repair(&job));
            assert_memory_equal(c, wanted, BYTES);
        }
}

/* Two of five systems are home, and three columns of the third. */
static void test_systems(void **state)
{
    (void)state;
    enum { ORDER = 4, WIDE = 6, MEMBERS = 5 };
    const gpb_facts facts = { 0 };
    for (int right = 0; right < 2; right++) {
        const gpb_matrix triangle = { .base = a, .ld = LD, .stride = ORDER * LD, .trans = 'T', .uplo = 'L',
                                      .diag = 'U', .structure = GPB_TRIANGULAR },
                         x = { .base = c, .ld = LD, .stride = WIDE * LD, .trans = 'N' };
        gpb_call g = { .routine = GPB_ROUTINE_TRSM, .type = GPB_TYPE_d, .m = right ? WIDE : ORDER,
                       .n = right ? ORDER : WIDE, .k = ORDER, .alpha = 2, .batch = MEMBERS,
                       .x = { right ? x : triangle, right ? triangle : x, x } };
        g.x[GPB_C].uplo = 'G';
        gpb_job job = { .call = &g, .facts = &facts, .plan = { .gpu = true, .kc = ORDER, .group = MEMBERS },
                        .progress = { .members = 2, .cols = 3 } };
        for (int i = 0; i < GPB_C; i++)
            job.plan.panel[i].extent = job.plan.panel[i].strip = gpb_call_extent(&g, i);
        asked_for = 0;
        assert_true(gpb_repair(&job));
        assert_int_equal(asked_for, MEMBERS - 2);
        for (int l = 2; l < MEMBERS; l++) {
            const gpb_triangular *t = &asked[l - 2].of;
            assert_int_equal(asked[l - 2].done, l == 2 ? 3 : 0);
            assert_ptr_equal(t->a, a + sizeof(double) * l * ORDER * LD);
            assert_ptr_equal(t->b, c + sizeof(double) * l * WIDE * LD);
            assert_true(t->solves && t->side == (right ? 'R' : 'L') && t->uplo == 'L' && t->trans == 'T');
            assert_true(t->diag == 'U' && t->m == g.m && t->n == g.n && t->alpha == 2);
            assert_true(t->lda == LD && t->ldb == LD);
        }
    }
}

/* Flagged blocks of a triangle: what of them lies in it, and nothing else. */
static void check_blocks(enum gpb_type type, char uplo)
{
    const int64_t e = (int64_t)gpb_type_bytes(type), high = GPB_GUARD_ROWS(gpb_type_is_complex(type));
    bool flagged[16] = { [1] = true };
    const gpb_region all = { .rows = ROWS, .cols = ROWS };
    const gpb_call g = { .type = type, .m = ROWS, .n = ROWS, .k = 7, .batch = 1, .alpha = 2, .beta = 3,
                         .x = { { .base = a, .ld = LD, .trans = 'N', .uplo = 'G' },
                                { .base = b, .ld = LD, .trans = 'N', .uplo = 'G' },
                                { .base = c, .ld = LD, .trans = 'N', .uplo = uplo } } };
    gpb_call whole = g;
    whole.x[GPB_C].base = wanted;
    memcpy(wanted, c, BYTES);
    multiply(&whole);
    for (int64_t j = 0; j < ROWS; j++)
        for (int64_t i = 0; i < LD; i++) {
            const bool mine = i < ROWS && (uplo == 'U' ? i <= j : i >= j)
                              && (i / high == 1 || j / GPB_GUARD == 2);
            if (!mine) memcpy(wanted + (i + j * LD) * e, c + (i + j * LD) * e, (size_t)e);
        }
    const member x = { .call = &g, .at = { a, b, c }, .ld = { LD, LD, LD }, .k = g.k, .beta = g.beta };
    flagged[ceil_div(ROWS, high) + 2] = true;
    blocks(&x, &all, flagged);
    assert_memory_equal(c, wanted, BYTES);
}

static void test_blocks(void **state)
{
    (void)state;
    uint64_t seed = 2;
    limit = SIZE_MAX;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int turned = 0; turned < 2; turned++) {
            const int64_t count = BYTES / (int64_t)gpb_type_bytes(type);
            gpb_fill(GPB_FILL_integer, type, a, count, &seed);
            gpb_fill(GPB_FILL_integer, type, b, count, &seed);
            gpb_fill(GPB_FILL_integer, type, c, count, &seed);
            check_blocks(type, "UL"[turned]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rectangles),
                                        cmocka_unit_test(test_two_products), cmocka_unit_test(test_systems),
                                        cmocka_unit_test(test_blocks) };
    return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
