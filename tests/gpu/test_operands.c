/* SPDX-License-Identifier: MIT */
/* Operands in every mix of pageable, pinned, device and managed memory; batches; gemmtr; operands that are
   not referenced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/problem.h"

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const float *alpha, const float *a,
            const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc, size_t, size_t);
void cblas_sgemm_batch_strided(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
                               int stridea, const float *b, int ldb, int strideb, float beta, float *c, int ldc, int stridec,
                               int batch);
void cblas_sgemm_batch(int layout, const int *transa, const int *transb, const int *m, const int *n, const int *k,
                       const float *alpha, const float **a, const int *lda, const float **b, const int *ldb, const float *beta,
                       float **c, const int *ldc, int groups, const int *group_size);
void cblas_sgemmtr(int layout, int uplo, int transa, int transb, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);

/* One kernel of each form. */
static const char *const kernels[] = { "tile_2d", "padded", "warp_tile" };
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void try_on_gpu(problem *p, float alpha, float beta)
{
    int64_t before = gpu_calls();
    assert_true(problem_try(p, alpha, beta, GPB_MATH_FFMA));
    assert_int_equal(gpu_calls(), before + 1);
}

static void test_places(void **state)
{
    (void)state;
    int64_t runs = 0;
    for (int mix = 0; mix < PLACES * PLACES * PLACES; mix++) {
        problem p = { .m = 70 + mix % 3, .n = 131, .k = 37, .transa = "NTC"[mix % 3], .transb = "TN"[mix % 2],
                      .row_major = mix & 2, .pad = mix % 5, .offset = mix % 4,
                      .at = { mix % PLACES, mix / PLACES % PLACES, mix / PLACES / PLACES } };
        if (!place_exists(p.at[0]) || !place_exists(p.at[1]) || !place_exists(p.at[2])) continue;
        problem_make(&p);
        for (int i = 0; i < KERNELS; i++) {
            set_option("KERNEL", kernels[i]);
            try_on_gpu(&p, 1, 0);
            try_on_gpu(&p, -1.5f, 0.5f);
            runs += 2;
        }
        problem_free(&p);
    }
    assert_true(runs >= 2 * KERNELS * 27);
}

/* With alpha == 0 or k == 0 neither A nor B is referenced; beta == 0 then clears C. */
static void test_not_referenced(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        problem p = { .m = 33, .n = 20, .k = i & 1 ? 0 : 9, .transa = 'N', .transb = 'N', .pad = 3,
                      .at = { PLACE_DEVICE, PLACE_DEVICE, i & 8 ? PLACE_DEVICE : PLACE_PAGEABLE } };
        float alpha = i & 1 ? 1 : 0, beta = i & 2 ? 0.5f : 0;
        problem_make(&p);
        problem_fill_c(&p, beta);
        cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, p.m, p.n, p.k, alpha, NULL, p.lda, NULL, p.ldb, beta, p.c.address, p.ldc);
        assert_true(problem_check(&p, alpha, beta, GPB_MATH_FFMA));
        problem_free(&p);
    }
}

static void test_fortran_letters(void **state)
{
    (void)state;
    set_option("KERNEL", NULL);
    for (const char *ta = "NTCntc"; *ta; ta++)
        for (const char *tb = "NTCntc"; *tb; tb++) {
            problem p = { .m = 50, .n = 41, .k = 30, .transa = *ta, .transb = *tb, .pad = 1 };
            float alpha = 0.7f, beta = 1.3f;
            problem_make(&p);
            problem_fill_c(&p, beta);
            int64_t before = gpu_calls();
            sgemm_(ta, tb, &p.m, &p.n, &p.k, &alpha, p.a.address, &p.lda, p.b.address, &p.ldb, &beta, p.c.address, &p.ldc, 1, 1);
            assert_int_equal(gpu_calls(), before + 1);
            assert_true(problem_check(&p, alpha, beta, GPB_MATH_FFMA));
            problem_free(&p);
        }
}

/* Members of a batch lie in three operands one after the other; each is judged against plain FP64 sums here. */
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
        *all[o] = operand_make(place, stride[o] * (count - 1) + size[o], o);
        for (int64_t i = 0; i < all[o]->count + o; i++) all[o]->image[i] = value(i + o);
        operand_put(all[o]);
    }
    return t;
}

/* C = 0.75 A B - 0.5 C in every member, the gaps between members untouched. */
static void batch_check(batch *t)
{
    float *after = malloc(4 * (size_t)(t->c.count + t->c.offset));
    assert_non_null(after);
    operand_get(&t->c, after);
    const float *a = t->a.image + t->a.offset, *b = t->b.image + t->b.offset;
    const float *c = t->c.image + t->c.offset, *now = after + t->c.offset;
    assert_memory_equal(after, t->c.image, 4 * (size_t)t->c.offset);
    for (int64_t at = 0; at < t->c.count; at++) {
        int64_t l = at / t->stride_c, i = at % t->stride_c % t->m, j = at % t->stride_c / t->m;
        if (j >= t->n) {
            assert_memory_equal(&now[at], &c[at], 4);
            continue;
        }
        double sum = 0, magnitude = 0;
        for (int p = 0; p < t->k; p++) {
            double product = (double)a[l * t->stride_a + i + p * t->m] * b[l * t->stride_b + p + j * t->k];
            sum += product;
            magnitude += fabs(product);
        }
        double error = fabs(now[at] - (0.75 * sum - 0.5 * c[at]));
        assert_true(error <= 0x1p-24 * (0.75 * (t->k + 4) * magnitude + fabs(c[at])));
    }
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
            cblas_sgemm_batch_strided(COLUMN_MAJOR, NO_TRANS, NO_TRANS, t.m, t.n, t.k, 0.75f, t.a.address, t.m, t.stride_a,
                                      t.b.address, t.k, t.stride_b, -0.5f, t.c.address, t.m, t.stride_c, t.count);
            assert_true(gpu_calls() > before);
            batch_check(&t);
        }
    }
}

/* Groups of different shapes in one call; one of more members than a lane's table of addresses has room for. Members at equal distances, which
   are a strided batch, and in no order. */
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
        const int m[] = { 40, 7, 2 }, n[] = { 30, 65, 2 }, k[] = { 20, 129, 3 }, size[] = { FEW, FEW, on_device ? MANY : FEW };
        batch group[GROUPS];
        int members = 0;
        for (int g = 0; g < GROUPS; g++) {
            group[g] = batch_make(m[g], n[g], k[g], size[g], place, g == 1);
            for (int l = 0; l < size[g]; l++, members++) {
                const int at = l * step % size[g];
                a[members] = group[g].a.address + at * group[g].stride_a;
                b[members] = group[g].b.address + at * group[g].stride_b;
                c[members] = group[g].c.address + at * group[g].stride_c;
            }
        }
        const int none[] = { NO_TRANS, NO_TRANS, NO_TRANS };
        const float alpha[] = { 0.75f, 0.75f, 0.75f }, beta[] = { -0.5f, -0.5f, -0.5f };
        int64_t before = gpu_calls();
        cblas_sgemm_batch(COLUMN_MAJOR, none, none, m, n, k, alpha, a, m, b, k, beta, c, m, GROUPS, size);
        assert_true(gpu_calls() > before);
        for (int g = 0; g < GROUPS; g++) batch_check(&group[g]);
    }
}

/* Neighbouring groups that differ in one thing each, and so must not become one call: every other group is the plain one. */
static void test_batch_neighbours(void **state)
{
    (void)state;
    enum { PLAIN, TRANSA, TRANSB, M, N, K, LDA, LDB, LDC, ALPHA, BETA, THINGS, GROUPS = 2 * THINGS, MEMBERS = 2, ROOM = 400 };
    static float a[GROUPS * MEMBERS][ROOM], b[GROUPS * MEMBERS][ROOM], c[GROUPS * MEMBERS][ROOM], before[GROUPS * MEMBERS][ROOM];
    const float *as[GROUPS * MEMBERS], *bs[GROUPS * MEMBERS];
    float *cs[GROUPS * MEMBERS], alpha[GROUPS], beta[GROUPS];
    int ta[GROUPS], tb[GROUPS], m[GROUPS], n[GROUPS], k[GROUPS], lda[GROUPS], ldb[GROUPS], ldc[GROUPS], size[GROUPS];
    set_option("KERNEL", NULL);
    for (int rows = 0; rows < 2; rows++) {
        for (int g = 0; g < GROUPS; g++) {
            const int thing = g % 2 ? g / 2 : PLAIN;
            ta[g] = thing == TRANSA ? TRANS : NO_TRANS, tb[g] = thing == TRANSB ? TRANS : NO_TRANS;
            m[g] = 12 - (thing == M), n[g] = 12 - (thing == N), k[g] = 12 - (thing == K), size[g] = MEMBERS;
            lda[g] = 12 + 3 * (thing == LDA), ldb[g] = 12 + 3 * (thing == LDB), ldc[g] = 12 + 3 * (thing == LDC);
            alpha[g] = thing == ALPHA ? -2 : 1, beta[g] = thing == BETA ? 3 : 1;
            for (int x = g * MEMBERS; x < (g + 1) * MEMBERS; x++)
                for (int i = 0; i < ROOM; i++) {
                    a[x][i] = value(i + x * ROOM), b[x][i] = value(i + x * ROOM + 1), c[x][i] = before[x][i] = value(i + x * ROOM + 2);
                    as[x] = a[x], bs[x] = b[x], cs[x] = c[x];
                }
        }
        cblas_sgemm_batch(rows ? ROW_MAJOR : COLUMN_MAJOR, ta, tb, m, n, k, alpha, as, lda, bs, ldb, beta, cs, ldc, GROUPS, size);
        for (int x = 0; x < GROUPS * MEMBERS; x++) {
            const int g = x / MEMBERS;
            gpb_call call = { .type = GPB_TYPE_s, .x[GPB_A].trans = ta[g] == TRANS ? 'T' : 'N',
                              .x[GPB_B].trans = tb[g] == TRANS ? 'T' : 'N', .x[GPB_C].uplo = 'G',
                              .m = m[g], .n = n[g], .k = k[g], .x[GPB_A].ld = lda[g], .x[GPB_B].ld = ldb[g],
                                  .x[GPB_C].ld = ldc[g], .alpha = (double)alpha[g],
                              .beta = (double)beta[g], .x[GPB_A].base = a[x], .x[GPB_B].base = b[x],
                                  .x[GPB_C].base = c[x], .batch = 1 };
            if (rows) {
                const gpb_call by = call;
                call.x[GPB_A].trans = by.x[GPB_B].trans, call.x[GPB_B].trans = by.x[GPB_A].trans,
                    call.m = by.n, call.n = by.m, call.x[GPB_A].base = by.x[GPB_B].base,
                        call.x[GPB_B].base = by.x[GPB_A].base;
                call.x[GPB_A].ld = by.x[GPB_B].ld, call.x[GPB_B].ld = by.x[GPB_A].ld;
            }
            assert_true(gpb_reference_check(GPB_MATH_FFMA, &call, before[x], sizeof before[x]) <= 1);
        }
    }
}

/* The triangle as the whole product gives it, the other untouched. */
static void test_gemmtr(void **state)
{
    (void)state;
    for (int i = 0; i < 12 * KERNELS; i++) {
        set_option("KERNEL", kernels[i % KERNELS]);
        const bool upper = i & 1, rows = i & 2, pinned = i >= 8 * KERNELS;      /* beta = 0: then the driver writes C */
        const float beta = pinned ? 0 : -1;
        problem p = { .m = 141, .n = 141, .k = 50, .transa = 'N', .transb = 'T', .row_major = rows, .pad = 2,
                      .at = { PLACE_PAGEABLE, PLACE_PAGEABLE, pinned ? PLACE_PINNED : i & 4 ? PLACE_DEVICE : PLACE_PAGEABLE } };
        problem_make(&p);
        problem_fill_c(&p, 1);
        float *whole = malloc(4 * (size_t)p.c.count), *triangle = malloc(4 * (size_t)p.c.count);
        problem_call(&p, 0.5f, beta);
        operand_get(&p.c, whole);
        operand_put(&p.c);
        int64_t before = gpu_calls();
        cblas_sgemmtr(rows ? ROW_MAJOR : COLUMN_MAJOR, upper ? UPPER : LOWER, NO_TRANS, TRANS, p.n, p.k, 0.5f, p.a.address, p.lda,
                      p.b.address, p.ldb, beta, p.c.address, p.ldc);
        assert_int_equal(gpu_calls(), before + 1);
        operand_get(&p.c, triangle);
        for (int64_t at = 0; at < p.c.count; at++) {
            int64_t x = at % p.ldc, y = at / p.ldc, row = rows ? y : x, column = rows ? x : y;
            bool mine = x < p.n && (upper ? row <= column : row >= column);
            if (!mine) assert_memory_equal(&triangle[at], &p.c.image[at], 4);
            else assert_true(fabsf(triangle[at] - whole[at]) <= 0x1p-24f * 54 * 50);
        }
        free(whole);
        free(triangle);
        problem_free(&p);
    }
}

/* C in place, A and B from the host in several panels of k, data that FP16 slices do not hold for: every block of C gets its stand-in. */
static void test_in_place(void **state)
{
    (void)state;
    set_option("KERNEL", "fp16x3");
    for (int i = 0; i < 2; i++) {
        problem p = { .m = 1200, .n = 1100, .k = i ? 300 : 700, .transa = 'N', .transb = 'T', .fill = i ? FILL_SPECIAL : FILL_WIDE,
                      .at = { PLACE_PAGEABLE, PLACE_PAGEABLE, PLACE_DEVICE } };
        problem_make(&p);
        try_on_gpu(&p, 1, i ? 0 : 0.5f);
        problem_free(&p);
    }
    set_option("KERNEL", NULL);
}

/* The caller's context is the current one afterwards, also if there was none. */
static void test_context(void **state)
{
    (void)state;
    problem p = { .m = 64, .n = 64, .k = 64, .transa = 'N', .transb = 'N' };
    problem_make(&p);
    void *mine = gpu_current();
    try_on_gpu(&p, 1, 0);
    assert_ptr_equal(gpu_current(), mine);
    gpu_make_current(false);
    void *none = gpu_current();
    try_on_gpu(&p, 1, 0);
    assert_ptr_equal(gpu_current(), none);
    gpu_make_current(true);
    problem_free(&p);
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places), cmocka_unit_test(test_not_referenced), cmocka_unit_test(test_fortran_letters),
        cmocka_unit_test(test_batch_strided), cmocka_unit_test(test_batch_pointers), cmocka_unit_test(test_batch_neighbours),
        cmocka_unit_test(test_gemmtr),
        cmocka_unit_test(test_in_place), cmocka_unit_test(test_context),
    };
    return cmocka_run_group_tests_name("operands", tests, NULL, NULL);
}
