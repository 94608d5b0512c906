/* SPDX-License-Identifier: MIT */
/* Every combination of special values in A, B, C, alpha and beta, in all types. Each result must be in the
   class that the reference BLAS gives (NaN, an infinity or a zero with its sign, finite), and have the same
   bits if nothing had to be computed. Complex numbers are judged part by part.

   The reference here is a plain loop, in each of the orders that a BLAS may take: alpha times B's element or
   times the sum, the sum from zero or from the first product, a product rounded or not, beta = 1 as no
   product or as one. If these orders differ (FLT_MAX * FLT_MAX * 1e-40, the sign of a zero, 1 + 0 i times an
   infinity), the result of any of them will do. Complex products are Fortran's: of four real ones, whatever
   these are.

   One call contains all pairs of A's and B's values, and all of C's: row 8a + c of op(A) has value a at one
   place of k, column b of op(B) has value b at the same place, and C(8a + c, b) has value c.
   GPB_TEST_LARGE=1: all kernels, and every combination in tiny problems, too. GPB_TEST_FEW=1: a layout of
   three. GPB_TEST_TYPES=dcz: these types alone. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/cores.h"
#include "tests/gpu/placed.h"

enum { VALUES = 8, ORDERS = 6 };

/* An element of any type; of a real one the first part. */
typedef struct number {
    double part[2];
} number;

static enum gpb_type type;                 /* of the tests at work */
static bool is_complex(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX; }
static bool is_single(void) { return gpb_type_real_bytes(type) == sizeof(float); }
static int parts(void) { return is_complex() ? 2 : 1; }
static double largest(void) { return is_single() ? (double)FLT_MAX : DBL_MAX; }
static double subnormal(void) { return is_single() ? (double)1e-40f : 1e-310; }

static number value(int x)
{
    const double large = largest(), small = subnormal();
    const number real[VALUES] = { { { 0, 0 } },        { { -0.0, 0 } },      { { small, 0 } },
                                  { { INFINITY, 0 } }, { { -INFINITY, 0 } }, { { NAN, 0 } },
                                  { { large, 0 } },    { { 1, 0 } } };
    const number pairs[VALUES] = { { { 0, 0 } },      { { -0.0, -2 } },     { { small, -small } },
                                   { { INFINITY, 0 } }, { { 1, -INFINITY } }, { { NAN, 1 } },
                                   { { 0, large } },    { { 1, 0 } } };
    return is_complex() ? pairs[x] : real[x];
}

/* How a run spreads them: `apart` rows from one of A's values to the next, and columns between B's. 8 and 1
   pack them. 128 and 128 give each a block of its own, so a kernel that leaves blocks to another one does so
   for some and not for others. */
typedef struct layout {
    int k, rows_apart, columns_apart;
    bool plain;
} layout;   /* plain: of A and B only finite ordinary values */

enum class { NOT_A_NUMBER, MINUS_INFINITY, PLUS_INFINITY, MINUS_ZERO, PLUS_ZERO, FINITE };
static enum class class_of(double x)
{
    if (isnan(x)) return NOT_A_NUMBER;
    if (isinf(x)) return x < 0 ? MINUS_INFINITY : PLUS_INFINITY;
    if (x == 0) return signbit(x) ? MINUS_ZERO : PLUS_ZERO;
    return FINITE;
}

/* ---- arithmetic of the type: each operation rounds, whatever the compiler would like */

static double rounded(double x)
{
    volatile float single = (float)x;
    return is_single() ? (double)single : x;
}

/* A product and its sum with z are two roundings, or one. The product of singles is exact before. */
static double step(double x, double y, double z, bool fused)
{
    volatile double product = x * y;
    return rounded(fused ? fma(x, y, z) : rounded(product) + z);
}

static number sum_of(number x, number y)
{
    return (number){ { rounded(x.part[0] + y.part[0]), rounded(x.part[1] + y.part[1]) } };
}

/* z + x y */
static number add_product(number z, number x, number y, bool fused)
{
    if (!is_complex()) return (number){ { step(x.part[0], y.part[0], z.part[0], fused), 0 } };
    if (fused)
        return (number){ { step(-x.part[1], y.part[1], step(x.part[0], y.part[0], z.part[0], true), true),
                           step(x.part[1], y.part[0], step(x.part[0], y.part[1], z.part[1], true), true) } };
    const number product = {
        { rounded(rounded(x.part[0] * y.part[0]) - rounded(x.part[1] * y.part[1])),
          rounded(rounded(x.part[0] * y.part[1]) + rounded(x.part[1] * y.part[0])) }
    };
    return sum_of(z, product);
}

/* No sum: the zeros keep their signs. */
static number product_of(number x, number y)
{
    if (!is_complex()) return (number){ { rounded(x.part[0] * y.part[0]), 0 } };
    return add_product((number){ { -0.0, -0.0 } }, x, y, false);
}

static bool is_zero(number x) { return x.part[0] == 0 && x.part[1] == 0; }
static bool is_one(number x) { return x.part[0] == 1 && x.part[1] == 0; }

/* beta * c as netlib has it: 0 does not read C, 1 leaves it. */
static number scaled(number beta, number c)
{
    return is_zero(beta) ? (number){ { 0, 0 } } : is_one(beta) ? c : product_of(beta, c);
}

/* One element's question. */
typedef struct element {
    int k;
    const number *a, *b;
    number alpha, beta, c;
} element;

/* One element by one order. left: beta = 1 is no product, also where netlib forms one. */
static number reference(const element *e, int order, bool left)
{
    const number *a = e->a, *b = e->b, alpha = e->alpha, beta = e->beta, c = e->c;
    const int k = e->k;
    if (is_zero(alpha) || k == 0) return scaled(beta, c);
    if (order < 2) {                       /* netlib's NN and NT: alpha B(p,j) first, onto beta C; 1: fused */
        number sum = scaled(beta, c);
        for (int p = 0; p < k; p++) sum = add_product(sum, product_of(alpha, b[p]), a[p], order == 1);
        return sum;
    }
    number sum = { { 0, 0 } };
    for (int p = 0; p < k; p++) {
        /* netlib's TN and TT; 3: fused; 4: sum from the first product; 5: from the last */
        const int q = order == 5 ? k - 1 - p : p;
        sum = p == 0 && order == 4 ? product_of(a[q], b[q]) : add_product(sum, a[q], b[q], order == 3);
    }
    const number product = product_of(alpha, sum);
    return is_zero(beta) ? product : sum_of(product, left ? scaled(beta, c) : product_of(beta, c));
}

/* ---- judging */

static double size_of(number x) { return fabs(x.part[0]) + fabs(x.part[1]); }
static double size_of_product(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }    /* no NaN */

/* The sum of the absolute values of all terms, or more than that. */
static double terms_of(const element *e, int part)
{
    const number *c = &e->c;
    double size = is_one(e->beta) ? fabs(c->part[part]) : size_of_product(size_of(e->beta), size_of(*c));
    for (int p = 0; p < e->k; p++) {
        const double product = size_of_product(size_of(e->a[p]), size_of(e->b[p]));
        size += size_of_product(size_of(e->alpha), product);
    }
    return size;
}

/* Finite results: within the spread of a sum of k terms. */
static bool is_like(const element *e, number got, number wanted)
{
    const double u = is_single() ? 0x1p-24 : 0x1p-53, least = is_single() ? 0x1p-148 : 0x1p-1073;
    const double steps = parts() * e->k + 4;
    for (int part = 0; part < parts(); part++) {
        const double x = got.part[part], y = wanted.part[part];
        if (class_of(x) != class_of(y)) return false;
        if (class_of(x) != FINITE) continue;
        if (!(fabs(x - y) <= 2 * steps * u * terms_of(e, part) + steps * least * (1 + size_of(e->alpha))))
            return false;
    }
    return true;
}

/* Is `got` what one of the orders gives? */
static bool is_right(const element *e, number got)
{
    for (int order = 0; order < ORDERS; order++)
        for (int left = 0; left < 2; left++)
            if (is_like(e, got, reference(e, order, left))) return true;
    return false;
}

typedef struct table {
    layout at;
    int m, n;
    bool conjugated;                       /* A is stored conjugated, and the call undoes that */
    number *a, *b;                         /* op(A)' and op(B), k-contiguous */
    operand oa, ob, oc;
    void *c;
} table;

static number get(const void *x, int64_t at)
{
    const int64_t first = at * parts();
    number n = { { 0, 0 } };
    for (int64_t part = 0; part < parts(); part++) {
        const int64_t real = first + part;
        n.part[part] = is_single() ? (double)((const float *)x)[real] : ((const double *)x)[real];
    }
    return n;
}

static void put(void *x, int64_t at, number n)
{
    const int64_t first = at * parts();
    for (int part = 0; part < parts(); part++) {
        if (is_single()) ((float *)x)[first + part] = (float)n.part[part];
        else ((double *)x)[first + part] = n.part[part];
    }
}

static gpb_scalar scalar(number x) { return __builtin_complex(x.part[0], x.part[1]); }

static bool is_plain(int v) { return is_zero(value(v)) || is_one(value(v)); }
/* sums of a few hundred of them are exact */
static number ordinary(int x)
{
    return (number){ { (x * 7 % 13 - 6) / 8.0, is_complex() ? (x * 5 % 11 - 5) / 8.0 : 0 } };
}
static int row_of(const table *t, int a, int c) { return a * t->at.rows_apart + c; }
static int column_of(const table *t, int b) { return b * t->at.columns_apart; }

static void fill_ab(table *t)
{
    const int k = t->at.k, place = k / 3;
    for (int x = 0; x < t->m * k; x++) t->a[x] = ordinary(x);
    for (int x = 0; x < t->n * k; x++) t->b[x] = ordinary(x + 5);
    for (int v = 0; v < VALUES; v++) {
        if (t->at.plain && !is_plain(v)) continue;
        for (int c = 0; c < VALUES; c++) t->a[row_of(t, v, c) * k + place] = value(v);
        t->b[column_of(t, v) * k + place] = value(v);
    }
    for (int x = 0; x < t->m * k; x++) {
        number stored = t->a[x];
        if (t->conjugated) stored.part[1] = -stored.part[1];
        put(t->oa.image, x, stored);
    }
    for (int x = 0; x < t->n * k; x++) put(t->ob.image, x, t->b[x]);
    operand_put(&t->oa);
    operand_put(&t->ob);
}

static number before_at(const table *t, int i, int j)
{
    int a = i / t->at.rows_apart, c = i % t->at.rows_apart;
    return c < VALUES && a < VALUES && j % t->at.columns_apart == 0 ? value(c) : ordinary(i + 3 * j);
}

static table table_make(layout at, bool conjugated)
{
    table t = { .at = at, .m = VALUES * at.rows_apart, .n = VALUES * at.columns_apart,
                .conjugated = conjugated };
    t.a = malloc(sizeof *t.a * (size_t)(t.m * at.k));
    t.b = malloc(sizeof *t.b * (size_t)(t.n * at.k));
    t.c = malloc(gpb_type_bytes(type) * (size_t)(t.m * t.n));
    if (!t.a || !t.b || !t.c) abort();
    t.oa = operand_make(PLACE_DEVICE, type, t.m * at.k, 0);
    t.ob = operand_make(PLACE_DEVICE, type, t.n * at.k, 0);
    t.oc = operand_make(PLACE_DEVICE, type, t.m * t.n, 0);
    fill_ab(&t);
    for (int j = 0; j < t.n; j++)
        for (int i = 0; i < t.m; i++) put(t.oc.image, i + j * t.m, before_at(&t, i, j));
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

/* One call's combinations, and which are wrong. */
typedef struct answers {
    const table *t;
    number alpha, beta;
    bool wrong[VALUES * VALUES * VALUES];
} answers;

static void place_of(const table *t, int64_t x, int *i, int *j)
{
    const int v = (int)x % (VALUES * VALUES);
    *i = row_of(t, v / VALUES, v % VALUES);
    *j = column_of(t, (int)x / (VALUES * VALUES));
}

static element element_at(const answers *on, int i, int j)
{
    const table *t = on->t;
    return (element){ t->at.k, t->a + i * t->at.k, t->b + j * t->at.k, on->alpha, on->beta,
                      get(t->oc.image, i + j * t->m) };
}

static void judge(void *of, int64_t x)
{
    answers *on = of;
    const size_t each = gpb_type_bytes(type);
    int i, j;
    place_of(on->t, x, &i, &j);
    const size_t at = each * (size_t)(i + j * on->t->m);
    const bool same = !memcmp((char *)on->t->c + at, (char *)on->t->oc.image + at, each);
    const element e = element_at(on, i, j);
    /* nothing to do: the bits stay, a NaN's too */
    on->wrong[x] = is_zero(on->alpha) && is_one(on->beta) ? !same
                                                          : !is_right(&e, get(on->t->c, i + j * on->t->m));
}

static void print_number(const char *name, number x)
{
    if (is_complex()) fprintf(stderr, " %s (%g, %g)", name, x.part[0], x.part[1]);
    else fprintf(stderr, " %s %g", name, x.part[0]);
}

static void print_fault(const answers *on, int64_t x)
{
    int i, j;
    place_of(on->t, x, &i, &j);
    const element e = element_at(on, i, j);
    const int place = e.k / 3;
    fprintf(stderr, "%c, k %d, %d x %d%s:", gpb_type_of(type)->letter, e.k, on->t->m, on->t->n,
            on->t->conjugated ? ", A conjugated" : "");
    print_number("A", e.a[place]);
    print_number("B", e.b[place]);
    print_number("C", e.c);
    print_number("alpha", e.alpha);
    print_number("beta", e.beta);
    print_number("gives", get(on->t->c, i + j * on->t->m));
    print_number("instead of", reference(&e, 3, false));
    fprintf(stderr, "\n");
}

static int printed;                        /* faults of one test */

/* One call, all its combinations. Returns how many are wrong. */
static int try_scalars(table *t, number alpha, number beta)
{
    const int k = t->at.k;
    const gpb_problem of = { .type = type, .m = t->m, .n = t->n, .k = k,
                             .transa = t->conjugated ? 'C' : 'T', .transb = 'N', .ld = { k, k, t->m } };
    void *const at[GPB_OPERANDS] = { t->oa.address, t->ob.address, t->oc.address };
    answers on = { .t = t, .alpha = alpha, .beta = beta };
    int wrong = 0;
    operand_put(&t->oc);
    call_through_cblas(&of, scalar(alpha), scalar(beta), at, (int64_t[GPB_OPERANDS]){ 0 });
    operand_get(&t->oc, t->c);
    cores_each(VALUES * VALUES * VALUES, 100 + 200 * k, judge, &on);
    for (int x = 0; x < VALUES * VALUES * VALUES; x++)
        if (on.wrong[x] && wrong++ < 3 && printed++ < 20) print_fault(&on, x);
    return wrong;
}

typedef struct mode { const char *kernel, *image, *math; enum gpb_type type; int step; } mode;
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
    printed = 0;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
        if (l == 8 && !getenv("GPB_TEST_LARGE")) continue;
        if (l % 3 != 1 && getenv("GPB_TEST_FEW")) continue;
        if (layouts[l].columns_apart == 128 && !strcmp(m->math, "ieee"))
            continue; /* FMA kernels leave no blocks to others */
        table t = table_make(layouts[l], is_complex() && l % 2);
        for (int x = 0; x < VALUES * VALUES; x++, calls++)
            wrong += try_scalars(&t, value(x / VALUES), value(x % VALUES));
        table_free(&t);
    }
    printf("%c, %s, %s: %d combinations\n", gpb_type_of(type)->letter,
           m->kernel ? m->kernel : "the library's choice", m->math, calls * VALUES * VALUES * VALUES);
    assert_int_equal(wrong, 0);
}

/* One element, k = 1: what a program with tiny matrices gets. False: it is wrong. If alpha is 0 the host's
   BLAS answers, and of complex types these differ. */
static bool try_tiny(int x)
{
    const number a = value(x % 8), b = value(x / 8 % 8), c = value(x / 64 % 8);
    const element e = { 1, &a, &b, value(x / 512 % 8), value(x / 4096), c };
    const gpb_problem of = { .type = type, .m = 1, .n = 1, .k = 1, .transa = 'N', .transb = 'T',
                             .ld = { 1, 1, 1 } };
    gpb_element in_a, in_b, in_c, before;
    put(&in_a, 0, a);
    put(&in_b, 0, b);
    put(&in_c, 0, c);
    before = in_c;
    void *const at[GPB_OPERANDS] = { &in_a, &in_b, &in_c };
    call_through_cblas(&of, scalar(e.alpha), scalar(e.beta), at, (int64_t[GPB_OPERANDS]){ 0 });
    const bool nothing_to_do = is_zero(e.alpha) && is_one(e.beta);
    if (is_complex() && is_zero(e.alpha)) return true;
    const bool same = !memcmp(&in_c, &before, gpb_type_bytes(type));
    if (nothing_to_do ? same : is_right(&e, get(&in_c, 0))) return true;
    fprintf(stderr, "%c, one element:", gpb_type_of(type)->letter);
    print_number("A", a);
    print_number("B", b);
    print_number("C", c);
    print_number("alpha", e.alpha);
    print_number("beta", e.beta);
    print_number("gives", get(&in_c, 0));
    fprintf(stderr, "\n");
    return false;
}

static void test_tiny(void **state)
{
    const mode *m = *state;
    set_option("KERNEL", m->kernel);
    set_option("MATH", m->math);
    const int step = getenv("GPB_TEST_LARGE") ? 1 : 37; /* odd: all values of each come by */
    int wrong = 0;
    for (int x = 0; x < VALUES * VALUES * VALUES * VALUES * VALUES && wrong < 3; x += step)
        wrong += !try_tiny(x);
    assert_int_equal(wrong, 0);
}

static const mode all[] = {
#define TYPE(letter, type, bytes, flops, kind)     \
    { NULL, NULL, "fp32", GPB_TYPE_##letter, 0 }, \
    { NULL, NULL, "ieee", GPB_TYPE_##letter, 0 },
#include "dispatch/type.def"
#undef TYPE
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, MATH(math, form), GPB_TYPE_##p, step },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { MODES = sizeof all / sizeof *all };

static bool is_wanted(const mode *m)
{
    const char *types = getenv("GPB_TEST_TYPES");
    if (types && !strchr(types, gpb_type_of(m->type)->letter)) return false;
    if (m->type != type || !m->math || !(m->image ? kernel_runs(m->image) : type_runs(type))) return false;
    return !m->kernel || m->step >= 17 || getenv("GPB_TEST_LARGE"); /* not the ladder's first steps */
}

/* One type's tests; their failures. */
static int run_type(void)
{
    static char names[MODES][40];
    struct CMUnitTest tests[2 * MODES] = { 0 };
    size_t count = 0;
    for (int i = 0; i < MODES; i++) {
        if (!is_wanted(&all[i])) continue;
        snprintf(names[i], sizeof names[i], "%c %s", gpb_type_of(type)->letter,
                 all[i].kernel ? all[i].kernel : all[i].math);
        tests[count++] = (struct CMUnitTest){ names[i], test_mode, NULL, NULL, (void *)&all[i] };
        if (!all[i].kernel || !strcmp(all[i].math, "fp32"))
            tests[count++] = (struct CMUnitTest){ names[i], test_tiny, NULL, NULL, (void *)&all[i] };
    }
    return count ? _cmocka_run_group_tests("special", tests, count, NULL, NULL) : 0;
}

int main(void)
{
    int failures = 0;
    setenv("FAKECUDA_NETLIB", "1", 1);     /* the software libcuda: rounds at every step, overflow included */
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    for (type = 0; type < GPB_TYPES; type++) failures += run_type();
    return failures != 0;
}
