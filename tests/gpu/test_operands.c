/* SPDX-License-Identifier: MIT */
/* Operands in every mix of pageable, pinned, device and managed memory; batches; gemmtr; operands that are
   not referenced. In d, c and z: all routines, in every mix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc, size_t, size_t);

/* One kernel of each form. */
static const char *const kernels[] = { "tile_2d", "padded", "warp_tile" };
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void try_on_gpu(placed *p, float alpha, float beta)
{
    int64_t before = gpu_calls();
    assert_true(placed_try(p, alpha, beta, GPB_MATH_FMA));
    assert_int_equal(gpu_calls(), before + 1);
}

static void test_places(void **state)
{
    (void)state;
    int64_t runs = 0;
    for (int mix = 0; mix < PLACES * PLACES * PLACES; mix++) {
        placed p = { .of = { .m = 70 + mix % 3,
                             .n = 131,
                             .k = 37,
                             .transa = "NTC"[mix % 3],
                             .transb = "TN"[mix % 2],
                             .row_major = mix & 2,
                             .pad = mix % 5,
                             .offset = mix % 4 },
                     .at = { mix % PLACES, mix / PLACES % PLACES, mix / PLACES / PLACES } };
        if (!place_exists(p.at[0]) || !place_exists(p.at[1]) || !place_exists(p.at[2])) continue;
        placed_make(&p);
        for (int i = 0; i < KERNELS; i++) {
            set_option("KERNEL", kernels[i]);
            try_on_gpu(&p, 1, 0);
            try_on_gpu(&p, -1.5f, 0.5f);
            runs += 2;
        }
        placed_free(&p);
    }
    assert_true(runs >= 2 * KERNELS * 27);
}

/* The same in d, c and z by each routine. */
static void test_types(void **state)
{
    (void)state;
    const int step = getenv("GPB_TEST_FEW") ? 7 : 1;       /* 7 has no factor in common with the mixes */
    set_option("KERNEL", NULL);
    for (int mix = 0; mix < 3 * PLACES * PLACES * PLACES; mix += step) {
        const enum gpb_test_routine routine = (enum gpb_test_routine)((mix + mix / 4) % GPB_TEST_ROUTINES);
        const bool is_batch = gpb_test_row_of(routine)->members != GPB_MEMBERS_ONE;
        placed p = { .of = { .routine = routine, .type = (enum gpb_type)(1 + mix % 3), .m = 70 + mix % 3,
                             .n = gpb_test_has_triangle(routine) ? 70 + mix % 3 : 131, .k = 37,
                             .transa = "NTC"[mix / 3 % 3], .transb = "TNC"[mix % 3], .row_major = mix & 2,
                             .pad = mix % 5, .offset = mix % 4, .batch = is_batch ? 3 : 0 },
                     .at = { mix / 3 % PLACES, mix / 3 / PLACES % PLACES, mix / 3 / PLACES / PLACES } };
        if (gpb_test_has_triangle(routine)) p.of.uplo = "UL"[mix & 1];
        if (gpb_test_sided(routine)) {
            p.of.uplo = "UL"[mix / 4 & 1];
            p.of.side = "LR"[mix / 8 & 1];
        }
        if (!place_exists(p.at[0]) || !place_exists(p.at[1]) || !place_exists(p.at[2])) continue;
        placed_make(&p);
        const int64_t before = gpu_calls();
        assert_true(placed_try(&p, 1, 0, GPB_MATH_FMA));
        assert_true(placed_try(&p, -1.5 + 0.5i, 0.5 + 2.0i, GPB_MATH_FMA));
        assert_true(placed_try(&p, 0, 0.5 + 2.0i, GPB_MATH_FMA));
        assert_true(gpu_calls() > before + 1);
        placed_free(&p);
    }
}

/* Of a triangle on the device half of the tiles are left out if it is large. */
static void test_triangles_there(void **state)
{
    (void)state;
    set_option("KERNEL", NULL);
    for (int i = 0; i < (getenv("GPB_TEST_FEW") ? 1 : 2); i++) {
        placed p = { .of = { .routine = i ? GPB_TEST_syrk : GPB_TEST_gemmtr, .type = GPB_TYPE_d, .m = 4100,
                             .n = 4100, .k = 400, .transa = "NT"[i], .transb = 'T', .uplo = "LU"[i],
                             .pad = i },
                     .at = { PLACE_DEVICE, PLACE_DEVICE, PLACE_DEVICE } };
        placed_make(&p);
        const int64_t before = gpu_calls();
        assert_true(placed_try(&p, -0.5, 1.5, GPB_MATH_FMA));
        assert_int_equal(gpu_calls(), before + 1);
        placed_free(&p);
    }
}

/* With alpha == 0 or k == 0 neither A nor B is referenced; beta == 0 then clears C. */
static void test_not_referenced(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        placed p = { .of = { .m = 33, .n = 20, .k = i & 1 ? 0 : 9, .transa = 'N', .transb = 'N', .pad = 3 },
                     .at = { PLACE_DEVICE, PLACE_DEVICE, i & 8 ? PLACE_DEVICE : PLACE_PAGEABLE } };
        float alpha = i & 1 ? 1 : 0, beta = i & 2 ? 0.5f : 0;
        placed_make(&p);
        placed_fill_c(&p, beta);
        cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, p.of.m, p.of.n, p.of.k, alpha, NULL, p.of.ld[GPB_A],
                    NULL, p.of.ld[GPB_B], beta, p.x[GPB_C].address, p.of.ld[GPB_C]);
        assert_true(placed_check(&p, alpha, beta, GPB_MATH_FMA));
        placed_free(&p);
    }
}

static void test_fortran_letters(void **state)
{
    (void)state;
    set_option("KERNEL", NULL);
    for (const char *ta = "NTCntc"; *ta; ta++)
        for (const char *tb = "NTCntc"; *tb; tb++) {
            placed p = { .of = { .m = 50, .n = 41, .k = 30, .transa = *ta, .transb = *tb, .pad = 1 } };
            float alpha = 0.7f, beta = 1.3f;
            placed_make(&p);
            placed_fill_c(&p, beta);
            int64_t before = gpu_calls();
            sgemm_(ta, tb, &p.of.m, &p.of.n, &p.of.k, &alpha, p.x[GPB_A].address, &p.of.ld[GPB_A],
                   p.x[GPB_B].address, &p.of.ld[GPB_B], &beta, p.x[GPB_C].address, &p.of.ld[GPB_C], 1, 1);
            assert_int_equal(gpu_calls(), before + 1);
            assert_true(placed_check(&p, alpha, beta, GPB_MATH_FMA));
            placed_free(&p);
        }
}

/* Members of a batch lie in three operands one after the other. */
typedef struct batch {
    int m, n, k, count, stride_a, stride_b, stride_c;
    operand a, b, c;
} batch;

static float value(int64_t i) { return (float)(i * 2654435761u % 2001u) / 1000.0f - 1.0f; }

static batch batch_make(int m, int n, int k, int count, enum place place, bool shared_a)
{
    batch t = { m, n, k, count, shared_a ? 0 : m * k + 3, k * n + 5, m * n + 7, { 0 }, { 0 }, { 0 } };
    operand *all[] = { &t.a, &t.b, &t.c };
    int64_t size[] = { m * k, k * n, m * n }, stride[] = { t.stride_a, t.stride_b, t.stride_c };
    for (int o = 0; o < 3; o++) {
        *all[o] = operand_make(place, GPB_TYPE_s, stride[o] * (count - 1) + size[o], o);
        for (int64_t i = 0; i < all[o]->count + o; i++) operand_floats(all[o])[i] = value(i + o);
        operand_put(all[o]);
    }
    return t;
}

/* C = 0.75 A B - 0.5 C in every member, the gaps between members untouched. */
static void batch_check(batch *t)
{
    const float *before = operand_floats(&t->c) + t->c.offset;
    float *after = malloc(4 * (size_t)(t->c.count + t->c.offset));
    assert_non_null(after);
    operand_get(&t->c, after);
    assert_memory_equal(after, t->c.image, 4 * (size_t)t->c.offset);
    const gpb_problem p = { .m = t->m, .n = t->n, .k = t->k, .batch = t->count, .ld = { t->m, t->k, t->m } };
    gpb_call g = gpb_problem_call(&p, 0.75, -0.5, operand_floats(&t->a) + t->a.offset,
                                  operand_floats(&t->b) + t->b.offset, after + t->c.offset);
    g.x[GPB_A].stride = t->stride_a;
    g.x[GPB_B].stride = t->stride_b;
    g.x[GPB_C].stride = t->stride_c;
    assert_true(gpb_reference_check(GPB_MATH_FMA, &g, before, 4 * (size_t)t->c.count) <= 1);
    free(after);
    operand_free(&t->a);
    operand_free(&t->b);
    operand_free(&t->c);
}

static void test_batch_strided(void **state)
{
    (void)state;
    static const struct { int m, n, k, count; } cases[] = {
        { 3, 5, 2, 1 }, { 33, 20, 17, 9 }, { 130, 66, 40, 4 }, { 2, 2, 3, 70000 }
    };
    for (int i = 0; i < KERNELS; i++) {
        set_option("KERNEL", kernels[i]);
        for (int j = 0; j < 19; j++) {
            int which = j % 4;
            batch t = batch_make(cases[which].m, cases[which].n, cases[which].k, cases[which].count,
                                 j >= 16 ? PLACE_PINNED : j & 4 ? PLACE_DEVICE : PLACE_PAGEABLE, j & 8);
            int64_t before = gpu_calls();
            cblas_sgemm_batch_strided(COLUMN_MAJOR, NO_TRANS, NO_TRANS, t.m, t.n, t.k, 0.75f, t.a.address,
                                      t.m, t.stride_a, t.b.address, t.k, t.stride_b, -0.5f, t.c.address, t.m,
                                      t.stride_c, t.count);
            assert_true(gpu_calls() > before);
            batch_check(&t);
        }
    }
}

/* Groups of different shapes in one call. One has more members than a lane's table of addresses has room for.
   Members lie at equal distances, as in a strided batch, or in no order. */
static void test_batch_pointers(void **state)
{
    (void)state;
    enum { GROUPS = 3, FEW = 6, MANY = 25000 };
    static const float *a[2 * FEW + MANY], *b[2 * FEW + MANY];
    static float *c[2 * FEW + MANY];
    for (int i = 0; i < 3 * KERNELS; i++) {
        set_option("KERNEL", kernels[i % KERNELS]);
        const bool on_device = i < 2 * KERNELS;
        const enum place place = on_device ? PLACE_DEVICE : PLACE_PAGEABLE;
        const int step = i < KERNELS ? 1 : 7;      /* no multiple of 7 among the sizes */
        const int m[] = { 40, 7, 2 };
        const int n[] = { 30, 65, 2 };
        const int k[] = { 20, 129, 3 };
        const int size[] = { FEW, FEW, on_device ? MANY : FEW };
        batch group[GROUPS];
        int members = 0;
        for (int g = 0; g < GROUPS; g++) {
            group[g] = batch_make(m[g], n[g], k[g], size[g], place, g == 1);
            for (int l = 0; l < size[g]; l++, members++) {
                const int at = l * step % size[g];
                a[members] = (float *)group[g].a.address + at * group[g].stride_a;
                b[members] = (float *)group[g].b.address + at * group[g].stride_b;
                c[members] = (float *)group[g].c.address + at * group[g].stride_c;
            }
        }
        const int none[] = { NO_TRANS, NO_TRANS, NO_TRANS };
        const float alpha[] = { 0.75f, 0.75f, 0.75f }, beta[] = { -0.5f, -0.5f, -0.5f };
        int64_t before = gpu_calls();
        cblas_sgemm_batch(COLUMN_MAJOR, none, none, m, n, k, alpha, a, m, b, k, beta, (float *const *)c, m,
                          GROUPS, size);
        assert_true(gpu_calls() > before);
        for (int g = 0; g < GROUPS; g++) batch_check(&group[g]);
    }
}

/* Neighbouring groups that differ in one thing each, and so must not become one call. Every other group is
   the plain one. */
enum { PLAIN, TRANSA, TRANSB, M, N, K, LDA, LDB, LDC, ALPHA, BETA, THINGS };
enum { GROUPS = 2 * THINGS, MEMBERS = 2, ALL = GROUPS * MEMBERS, ROOM = 400 };
static struct {
    float a[ALL][ROOM], b[ALL][ROOM], c[ALL][ROOM], before[ALL][ROOM];
    const float *as[ALL], *bs[ALL];
    float *cs[ALL], alpha[GROUPS], beta[GROUPS];
    int ta[GROUPS], tb[GROUPS], m[GROUPS], n[GROUPS], k[GROUPS];
    int lda[GROUPS], ldb[GROUPS], ldc[GROUPS], size[GROUPS];
} in;

static void describe_group(int g, int thing)
{
    in.ta[g] = thing == TRANSA ? TRANS : NO_TRANS;
    in.tb[g] = thing == TRANSB ? TRANS : NO_TRANS;
    in.m[g] = 12 - (thing == M);
    in.n[g] = 12 - (thing == N);
    in.k[g] = 12 - (thing == K);
    in.lda[g] = 12 + 3 * (thing == LDA);
    in.ldb[g] = 12 + 3 * (thing == LDB);
    in.ldc[g] = 12 + 3 * (thing == LDC);
    in.alpha[g] = thing == ALPHA ? -2 : 1;
    in.beta[g] = thing == BETA ? 3 : 1;
    in.size[g] = MEMBERS;
}

static void fill_member(int x)
{
    for (int i = 0; i < ROOM; i++) {
        in.a[x][i] = value(i + x * ROOM);
        in.b[x][i] = value(i + x * ROOM + 1);
        in.c[x][i] = in.before[x][i] = value(i + x * ROOM + 2);
    }
    in.as[x] = in.a[x];
    in.bs[x] = in.b[x];
    in.cs[x] = in.c[x];
}

static void check_member(int x, bool rows)
{
    const int g = x / MEMBERS;
    const gpb_problem p = { .m = in.m[g], .n = in.n[g], .k = in.k[g], .row_major = rows,
                            .transa = in.ta[g] == TRANS ? 'T' : 'N', .transb = in.tb[g] == TRANS ? 'T' : 'N',
                            .ld = { in.lda[g], in.ldb[g], in.ldc[g] } };
    const gpb_call call = gpb_problem_call(&p, (double)in.alpha[g], (double)in.beta[g], in.a[x], in.b[x],
                                           in.c[x]);
    assert_true(gpb_reference_check(GPB_MATH_FMA, &call, in.before[x], sizeof in.before[x]) <= 1);
}

static void test_batch_neighbours(void **state)
{
    (void)state;
    set_option("KERNEL", NULL);
    for (int rows = 0; rows < 2; rows++) {
        for (int g = 0; g < GROUPS; g++) describe_group(g, g % 2 ? g / 2 : PLAIN);
        for (int x = 0; x < ALL; x++) fill_member(x);
        cblas_sgemm_batch(rows ? ROW_MAJOR : COLUMN_MAJOR, in.ta, in.tb, in.m, in.n, in.k, in.alpha, in.as,
                          in.lda, in.bs, in.ldb, in.beta, in.cs, in.ldc, GROUPS, in.size);
        for (int x = 0; x < ALL; x++) check_member(x, rows);
    }
}

/* The triangle as the whole product gives it, the other untouched. */
static void test_gemmtr(void **state)
{
    (void)state;
    for (int i = 0; i < 12 * KERNELS; i++) {
        set_option("KERNEL", kernels[i % KERNELS]);
        const bool upper = i & 1;      /* beta = 0: then the driver writes C */
        const bool rows = i & 2;
        const bool pinned = i >= 8 * KERNELS;
        const float beta = pinned ? 0 : -1;
        placed p = {
            .of = { .m = 141, .n = 141, .k = 50, .transa = 'N', .transb = 'T', .row_major = rows, .pad = 2 },
            .at = { PLACE_PAGEABLE, PLACE_PAGEABLE,
                    pinned      ? PLACE_PINNED
                        : i & 4 ? PLACE_DEVICE
                                : PLACE_PAGEABLE }
        };
        placed_make(&p);
        placed_fill_c(&p, 1);
        float *whole = malloc(4 * (size_t)p.x[GPB_C].count), *triangle = malloc(4 * (size_t)p.x[GPB_C].count);
        placed_call(&p, 0.5f, beta);
        operand_get(&p.x[GPB_C], whole);
        operand_put(&p.x[GPB_C]);
        int64_t before = gpu_calls();
        cblas_sgemmtr(rows ? ROW_MAJOR : COLUMN_MAJOR, upper ? UPPER : LOWER, NO_TRANS, TRANS, p.of.n, p.of.k,
                      0.5f, p.x[GPB_A].address, p.of.ld[GPB_A], p.x[GPB_B].address, p.of.ld[GPB_B], beta,
                      p.x[GPB_C].address, p.of.ld[GPB_C]);
        assert_int_equal(gpu_calls(), before + 1);
        operand_get(&p.x[GPB_C], triangle);
        for (int64_t at = 0; at < p.x[GPB_C].count; at++) {
            int64_t x = at % p.of.ld[GPB_C];
            int64_t y = at / p.of.ld[GPB_C];
            int64_t row = rows ? y : x;
            int64_t column = rows ? x : y;
            bool mine = x < p.of.n && (upper ? row <= column : row >= column);
            if (!mine) assert_memory_equal(&triangle[at], operand_floats(&p.x[GPB_C]) + at, 4);
            else assert_true(fabsf(triangle[at] - whole[at]) <= 0x1p-24f * 54 * 50);
        }
        free(whole);
        free(triangle);
        placed_free(&p);
    }
}

/* C in place, A and B from the host in several panels of k, and data that FP16 slices cannot hold. So every
   block of C gets its fallback. */
static void test_in_place(void **state)
{
    (void)state;
    set_option("KERNEL", "fp16x3");
    for (int i = 0; i < 2; i++) {
        placed p = { .of = { .m = 1200,
                             .n = 1100,
                             .k = i ? 300 : 700,
                             .transa = 'N',
                             .transb = 'T',
                             .fill = i ? GPB_FILL_special : GPB_FILL_wide },
                     .at = { PLACE_PAGEABLE, PLACE_PAGEABLE, PLACE_DEVICE } };
        placed_make(&p);
        try_on_gpu(&p, 1, i ? 0 : 0.5f);
        placed_free(&p);
    }
    set_option("KERNEL", NULL);
}

/* The caller's context is the current one afterwards, also if there was none. */
static void test_context(void **state)
{
    (void)state;
    placed p = { .of = { .m = 64, .n = 64, .k = 64, .transa = 'N', .transb = 'N' } };
    placed_make(&p);
    void *mine = gpu_current();
    try_on_gpu(&p, 1, 0);
    assert_ptr_equal(gpu_current(), mine);
    gpu_make_current(false);
    void *none = gpu_current();
    try_on_gpu(&p, 1, 0);
    assert_ptr_equal(gpu_current(), none);
    gpu_make_current(true);
    placed_free(&p);
}

/* In a rounding mode that the GPU has not, a call is the host's unless an operand is on the device. */
static void test_rounding(void **state)
{
    (void)state;
    set_option("KERNEL", NULL);
    for (int mix = 0; mix < PLACES * PLACES * PLACES; mix++) {
        placed p = { .of = { .m = 70, .n = 131, .k = 37, .transa = 'N', .transb = 'N' },
                     .at = { mix % PLACES, mix / PLACES % PLACES, mix / PLACES / PLACES } };
        if (!place_exists(p.at[0]) || !place_exists(p.at[1]) || !place_exists(p.at[2])) continue;
        const int64_t before = gpu_calls();
        int64_t there = 0;
        for (int x = 0; x < GPB_OPERANDS; x++) there |= p.at[x] == PLACE_DEVICE;
        placed_make(&p);
        placed_fill_c(&p, 0);
        fesetround(FE_UPWARD);
        placed_call(&p, 1, 0);
        fesetround(FE_TONEAREST);
        assert_int_equal(gpu_calls(), before + there);
        placed_free(&p);
    }
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),          cmocka_unit_test(test_types),
        cmocka_unit_test(test_triangles_there), cmocka_unit_test(test_not_referenced),
        cmocka_unit_test(test_fortran_letters), cmocka_unit_test(test_batch_strided),
        cmocka_unit_test(test_batch_pointers),  cmocka_unit_test(test_batch_neighbours),
        cmocka_unit_test(test_gemmtr),          cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_context),         cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests_name("operands", tests, NULL, NULL);
}
