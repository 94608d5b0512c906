/* SPDX-License-Identifier: MIT */
/* Every combination of special values in A, B, C, alpha and beta. Each result must be in the class that the
   reference BLAS gives (NaN, an infinity or a zero with its sign, finite), and have the same bits if nothing
   had to be computed.

   The reference here is a plain loop, in each of the orders that a BLAS may take: alpha times B's element or
   times the sum, the sum from zero or from the first product, a product rounded or not. If these orders
   differ (FLT_MAX * FLT_MAX * 1e-40, the sign of a zero), the result of any of them will do.

   One call contains all pairs of A's and B's values, and all of C's: row 8a + c of op(A) has value a at one
   place of k, column b of op(B) has value b at the same place, and C(8a + c, b) has value c.
   GPB_TEST_LARGE=1: all kernels, and every combination in tiny problems, too. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

enum { VALUES = 8, ORDERS = 6 };
static const float values[VALUES] = { 0, -0.0f, 1e-40f, INFINITY, -INFINITY, NAN, FLT_MAX, 1 };

/* How a run spreads them: `apart` rows from one of A's values to the next, and columns between B's. 8 and 1
   pack them. 128 and 128 give each a block of its own, so a kernel that leaves blocks to another one does so
   for some and not for others. */
typedef struct layout {
    int k, rows_apart, columns_apart;
    bool plain;
} layout;   /* plain: of A and B only finite ordinary values */

enum class { NOT_A_NUMBER, MINUS_INFINITY, PLUS_INFINITY, MINUS_ZERO, PLUS_ZERO, FINITE };
static const char *const class_names[] = { "NaN", "-Inf", "+Inf", "-0", "+0", "finite" };

static enum class class_of(float x)
{
    if (isnan(x)) return NOT_A_NUMBER;
    if (isinf(x)) return x < 0 ? MINUS_INFINITY : PLUS_INFINITY;
    if (x == 0) return signbit(x) ? MINUS_ZERO : PLUS_ZERO;
    return FINITE;
}

/* beta * c as netlib has it: 0 does not read C, 1 leaves it. */
static float scaled(float beta, float c) { return beta == 0 ? 0 : beta == 1 ? c : beta * c; }

/* One element by one order. volatile: each operation rounds, whatever the compiler would like. */
static float reference(int order, int k, const float *a, const float *b, float alpha, float beta, float c)
{
    volatile float sum = 0, x;
    if (alpha == 0 || k == 0) return scaled(beta, c);
    if (order < 2) {                       /* netlib's NN and NT: alpha B(p,j) first, onto beta C; 1: fused */
        sum = scaled(beta, c);
        for (int p = 0; p < k; p++) {
            x = alpha * b[p];
            if (order == 1) sum = fmaf(x, a[p], sum);
            else {
                x = x * a[p];
                sum = sum + x;
            }
        }
        return sum;
    }
    for (int p = 0; p < k;
         p++) { /* netlib's TN and TT; 3: fused; 4: sum from the first product; 5: from the last */
        int q = order == 5 ? k - 1 - p : p;
        x = a[q] * b[q];
        if (order == 3) sum = fmaf(a[q], b[q], sum);
        else if (p == 0 && order == 4) sum = x;
        else sum = sum + x;
    }
    x = alpha * sum;
    return beta == 0 ? x : x + beta * c;
}

/* Is `got` what one of the orders gives? Finite results: within the spread of a sum of k terms. */
static bool is_right(int k, const float *a, const float *b, float alpha, float beta, float c, float got,
                     float *wanted)
{
    double size = beta == 0 ? 0 : fabs((double)beta * (double)c);
    for (int p = 0; p < k && alpha != 0; p++) size += fabs((double)alpha * (double)a[p] * (double)b[p]);
    for (int order = 0; order < ORDERS; order++) {
        *wanted = reference(order, k, a, b, alpha, beta, c);
        if (class_of(got) == class_of(*wanted)) {
            if (class_of(got) != FINITE) return true;
            if (fabs((double)got - (double)*wanted) <= 2 * (k + 4) * 0x1p-24 * size + (k + 4) * 0x1p-148)
                return true;
        }
    }
    return false;
}

typedef struct table {
    layout at;
    int m, n;
    float *a, *b;                          /* op(A)' and op(B), k-contiguous */
    operand oa, ob, oc;
    float *c;
} table;

static bool is_plain(float x) { return x == 0 || x == 1; }
static float ordinary(int x)
{
    return (float)(x * 7 % 13 - 6) / 8;
} /* sums of a few hundred of them are exact */
static int row_of(const table *t, int a, int c) { return a * t->at.rows_apart + c; }
static int column_of(const table *t, int b) { return b * t->at.columns_apart; }

static void fill_ab(table *t)
{
    const int k = t->at.k, place = k / 3;
    for (int x = 0; x < t->m * k; x++) t->a[x] = ordinary(x);
    for (int x = 0; x < t->n * k; x++) t->b[x] = ordinary(x + 5);
    for (int v = 0; v < VALUES; v++) {
        if (t->at.plain && !is_plain(values[v])) continue;
        for (int c = 0; c < VALUES; c++) t->a[row_of(t, v, c) * k + place] = values[v];
        t->b[column_of(t, v) * k + place] = values[v];
    }
    memcpy(t->oa.image, t->a, 4 * (size_t)t->m * (size_t)k);
    memcpy(t->ob.image, t->b, 4 * (size_t)t->n * (size_t)k);
    operand_put(&t->oa);
    operand_put(&t->ob);
}

static float before_at(const table *t, int i, int j)
{
    int a = i / t->at.rows_apart, c = i % t->at.rows_apart;
    return c < VALUES && a < VALUES && j % t->at.columns_apart == 0 ? values[c] : ordinary(i + 3 * j);
}

static table table_make(layout at)
{
    table t = { .at = at, .m = VALUES * at.rows_apart, .n = VALUES * at.columns_apart };
    t.a = malloc(4 * (size_t)(t.m * at.k));
    t.b = malloc(4 * (size_t)(t.n * at.k));
    t.c = malloc(4 * (size_t)(t.m * t.n));
    if (!t.a || !t.b || !t.c) abort();
    t.oa = operand_make(PLACE_DEVICE, GPB_TYPE_s, t.m * at.k, 0);
    t.ob = operand_make(PLACE_DEVICE, GPB_TYPE_s, t.n * at.k, 0);
    t.oc = operand_make(PLACE_DEVICE, GPB_TYPE_s, t.m * t.n, 0);
    fill_ab(&t);
    for (int j = 0; j < t.n; j++)
        for (int i = 0; i < t.m; i++) operand_floats(&t.oc)[i + j * t.m] = before_at(&t, i, j);
    return t;
}

static void table_free(table *t)
{
    free(t->a);
    free(t->b);
    free(t->c);
    operand_free(&t->oa);
    operand_free(&t->ob);
    operand_free(&t->oc);
}

/* One call, all its combinations. Returns how many are wrong. */
static int try_scalars(table *t, float alpha, float beta)
{
    const int k = t->at.k;
    int wrong = 0;
    operand_put(&t->oc);
    cblas_sgemm(COLUMN_MAJOR, TRANS, NO_TRANS, t->m, t->n, k, alpha, t->oa.address, k, t->ob.address, k, beta,
                t->oc.address, t->m);
    operand_get(&t->oc, t->c);
    for (int b = 0; b < VALUES; b++)
        for (int v = 0; v < VALUES * VALUES; v++) {
            int i = row_of(t, v / VALUES, v % VALUES), j = column_of(t, b);
            float got = t->c[i + j * t->m], before = operand_floats(&t->oc)[i + j * t->m], wanted;
            const float *x = t->a + i * k, *y = t->b + j * k;
            bool same = !memcmp(&got, &before, 4);
            bool right = is_right(k, x, y, alpha, beta, before, got, &wanted);
            if (alpha == 0 && beta == 1) right = same; /* nothing to do: the bits stay, a NaN's too */
            if (right) continue;
            if (wrong++ < 3)
                fprintf(stderr,
                        "k %d, %d x %d: A %g B %g C %g alpha %g beta %g: %.9g (%s) instead of %.9g (%s)\n", k,
                        t->m, t->n, (double)values[v / VALUES], (double)values[b], (double)before,
                        (double)alpha, (double)beta, (double)got, class_names[class_of(got)], (double)wanted,
                        class_names[class_of(wanted)]);
        }
    return wrong;
}

typedef struct mode { const char *kernel, *image, *math; int step; } mode;
/* TF32 promises nothing for FLT_MAX. PADDED_C kernels add beta C in a second step, where a zero loses its
   sign. */
#define MATH(math, form)                                                               \
    (GPB_MATH_##math == GPB_MATH_TF32 || GPB_FORM_##form == GPB_FORM_PADDED_C ? NULL   \
         : GPB_MATH_##math == GPB_MATH_FMA                                   ? "ieee" \
                                                                              : "fp32")

static void test_mode(void **state)
{
    static const layout layouts[] = { { 1, 8, 1, false },      { 2, 8, 1, false },
                                      { 40, 8, 1, false },     { 100, 8, 1, false },
                                      { 40, 8, 1, true },      { 100, 8, 1, true },
                                      { 100, 40, 17, false },  { 40, 128, 128, false },
                                      { 100, 128, 128, false } };
    const mode *m = *state;
    set_option("KERNEL", m->kernel);
    set_option("MATH", m->math);
    int wrong = 0, calls = 0;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
        if (l == 8 && !getenv("GPB_TEST_LARGE")) continue;
        if (layouts[l].columns_apart == 128 && !strcmp(m->math, "ieee"))
            continue; /* FFMA kernels leave no blocks to others */
        table t = table_make(layouts[l]);
        for (int x = 0; x < VALUES * VALUES; x++, calls++)
            wrong += try_scalars(&t, values[x / VALUES], values[x % VALUES]);
        table_free(&t);
    }
    printf("%s, %s: %d combinations\n", m->kernel ? m->kernel : "the library's choice", m->math,
           calls * VALUES * VALUES * VALUES);
    assert_int_equal(wrong, 0);
}

/* One element, k = 1: what a program with tiny matrices gets. */
static void test_tiny(void **state)
{
    const mode *m = *state;
    set_option("KERNEL", m->kernel);
    set_option("MATH", m->math);
    const int step = getenv("GPB_TEST_LARGE") ? 1 : 37; /* odd: all values of each come by */
    int wrong = 0;
    for (int x = 0; x < VALUES * VALUES * VALUES * VALUES * VALUES; x += step) {
        float a = values[x % 8];
        float b = values[x / 8 % 8];
        float c = values[x / 64 % 8];
        float alpha = values[x / 512 % 8];
        float beta = values[x / 4096];
        float wanted;
        float got = c;
        cblas_sgemm(COLUMN_MAJOR, NO_TRANS, TRANS, 1, 1, 1, alpha, &a, 1, &b, 1, beta, &got, 1);
        bool right = alpha == 0 && beta == 1 ? !memcmp(&got, &c, 4)
                                             : is_right(1, &a, &b, alpha, beta, c, got, &wanted);
        if (right) continue;
        if (wrong++ < 3)
            fprintf(stderr, "one element: A %g B %g C %g alpha %g beta %g: %.9g\n", (double)a, (double)b,
                    (double)c, (double)alpha, (double)beta, (double)got);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    static const mode all[] = {
        { NULL, NULL, "fp32", 0 }, { NULL, NULL, "ieee", 0 },
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, MATH(math, form), step },
#include "kernels/gemm.def"
#undef KERNEL
    };
    enum { MODES = sizeof all / sizeof *all };
    setenv("FAKECUDA_NETLIB", "1", 1);     /* the software libcuda: FP32 at every step, overflow included */
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    struct CMUnitTest tests[2 * MODES] = { 0 };
    size_t count = 0;
    for (int i = 0; i < MODES; i++) {
        if (!all[i].math || (all[i].image && !kernel_runs(all[i].image))) continue;
        if (all[i].kernel && all[i].step < 17 && !getenv("GPB_TEST_LARGE"))
            continue; /* the ladder's first steps */
        const char *name = all[i].kernel ? all[i].kernel : all[i].math;
        tests[count++] = (struct CMUnitTest){ name, test_mode, NULL, NULL, (void *)&all[i] };
        if (!all[i].kernel || !strcmp(all[i].math, "fp32"))
            tests[count++] = (struct CMUnitTest){ name, test_tiny, NULL, NULL, (void *)&all[i] };
    }
    return _cmocka_run_group_tests("special", tests, count, NULL, NULL);
}
