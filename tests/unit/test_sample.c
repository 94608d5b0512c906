/* SPDX-License-Identifier: MIT */
/* Which operands a sample finds unfit for RESIDUES kernels: of both layouts, both types and triangles, of
   which nothing but what is stored is read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/hub/sample.h"
#include "tests/unit/random.h"

enum { N = 1500, LD = N + 3 };
static double a[2 * LD * N], b[2 * LD * N];

static double unit(void) { return (double)below(INT64_C(1) << 53) * 0x1p-53; }

static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += unit();
    return sum;
}

static void fill(double *x, int parts)
{
    for (int64_t i = 0; i < parts * LD * N; i++) x[i] = i % (parts * LD) < parts * N ? normal() : NAN;
}

static bool suits(enum gpb_type type, char transa, enum gpb_structure structure, char uplo,
                  enum gpb_place place)
{
    gpb_call call = { .type = type, .m = N, .n = N, .k = N, .alpha = 1, .batch = 1,
                      .x = { { .base = a, .ld = LD, .trans = transa, .structure = structure, .uplo = uplo },
                             { .base = b, .ld = LD, .trans = 'N' } } };
    gpb_facts facts = { 0 };
    facts.where[GPB_A].place = place;
    return gpb_sample_suits_residues(&call, &facts);
}

/* Each letter and type. */
static void expect(int parts, bool wanted)
{
    for (const char *trans = "NTC"; *trans; trans++)
        assert_int_equal(suits(parts == 1 ? GPB_TYPE_d : GPB_TYPE_z, *trans, GPB_GENERAL, 'G',
                               GPB_PLACE_HOST), wanted);
}

static void test_general(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 2; parts++) {
        fill(a, parts);
        fill(b, parts);
        expect(parts, true);
        for (int64_t i = 0; i < N; i++) a[parts * (i + i * LD)] = 1e4;       /* a dominant diagonal */
        expect(parts, false);
        assert_true(suits(parts == 1 ? GPB_TYPE_d : GPB_TYPE_z, 'N', GPB_GENERAL, 'G', GPB_PLACE_DEVICE));
        fill(a, parts);
        for (int64_t i = 0; i < parts * LD * N; i++) a[i] *= unit() < 0.6 ? 0 : 1;
        expect(parts, false);                                               /* mostly zeros */
        fill(a, parts);
        for (int64_t j = 0; j < N; j++)
            for (int64_t i = 0; i < parts * N; i++) a[i + j * parts * LD] *= ldexp(1, (int)(j % 80));
        const enum gpb_type type = parts == 1 ? GPB_TYPE_d : GPB_TYPE_z;    /* graded columns */
        assert_false(suits(type, 'N', GPB_GENERAL, 'G', GPB_PLACE_HOST));
        assert_true(suits(type, 'T', GPB_GENERAL, 'G', GPB_PLACE_HOST));
        memset(a, 0, sizeof a);
        expect(parts, true);                                                /* rows of zeros are exact */
        a[0] = NAN;
        expect(parts, true);                                                /* which is not seen */
        fill(a, parts);
        for (int64_t i = 0; i < parts * LD * N; i++) a[i] = 1 + unit();
        expect(parts, true);
        for (int64_t i = 0; i < parts * LD * N; i++) b[i] = NAN;
        expect(parts, false);                                               /* op(B) counts, too */
    }
}

static void test_triangles(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 2; parts++)
        for (const char *uplo = "UL"; *uplo; uplo++)
            for (int dominant = 0; dominant < 2; dominant++) {
                const enum gpb_type type = parts == 1 ? GPB_TYPE_d : GPB_TYPE_z;
                fill(a, parts);
                fill(b, parts);
                for (int64_t j = 0; j < N; j++)
                    for (int64_t i = 0; i < N; i++)
                        for (int part = 0; part < parts; part++) {
                            double *x = &a[parts * (i + j * LD) + part];
                            if (*uplo == 'U' ? i > j : i < j) *x = NAN;
                            if (i == j) *x = part ? NAN : dominant ? 1e4 : 1;   /* as of a Hermitian matrix */
                        }
                assert_int_equal(suits(type, 'N', GPB_HERMITIAN, *uplo, GPB_PLACE_HOST), !dominant);
                assert_int_equal(suits(type, 'N', GPB_SYMMETRIC, *uplo, GPB_PLACE_PINNED), !dominant);
            }
}

static void test_small(void **state)
{
    (void)state;
    double few[16];
    for (int i = 0; i < 16; i++) few[i] = NAN;
    const gpb_call call = { .type = GPB_TYPE_d, .m = 4, .n = 4, .k = 4, .alpha = 1, .batch = 1,
                            .x = { { .base = few, .ld = 4, .trans = 'N' },
                                   { .base = few, .ld = 4, .trans = 'N' } } };
    assert_true(gpb_sample_suits_residues(&call, &(gpb_facts){ 0 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_general), cmocka_unit_test(test_triangles),
                                        cmocka_unit_test(test_small) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
