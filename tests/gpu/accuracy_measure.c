/* SPDX-License-Identifier: MIT */
/* Products in FP64 at sampled places, on all cores, and the errors of a C against them. A sum of k doubles is
   off by k 2^-53 of |A||B|, a millionth of the errors that are measured. */
#include "tests/gpu/accuracy.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/reference.h"

enum { MAX_THREADS = 64, WIDTH = 4, COLUMNS = 4 };
typedef float floats __attribute__((vector_size(16), aligned(4)));
typedef double doubles __attribute__((vector_size(32)));
typedef int64_t masks __attribute__((vector_size(32)));

/* Evenly spread, at changing places in a tile, the last included. */
int64_t accuracy_place(int64_t size, int side, int x)
{
    return side == 1 ? size - 1 : (size - 1) * x / (side - 1);
}

typedef struct team { void (*work)(int64_t, void *); void *what; int64_t count; _Atomic int64_t next; } team;

static void *member(void *of)
{
    team *t = of;
    for (int64_t i; (i = t->next++) < t->count;) t->work(i, t->what);
    return NULL;
}

void accuracy_parallel(void (*work)(int64_t, void *), int64_t count, void *what)
{
    team t = { work, what, count, 0 };
    pthread_t threads[MAX_THREADS];
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), started = 0;
    if (cores > MAX_THREADS) cores = MAX_THREADS;
    while (started < cores - 1 && !pthread_create(&threads[started], NULL, member, &t)) started++;
    member(&t);
    while (started) pthread_join(threads[--started], NULL);
}

/* a times COLUMNS columns: sums of products and of their absolute values. */
static inline __attribute__((always_inline)) void dots_body(int64_t k, const float *a, const float *const *b,
                                                            double *value, double *product)
{
    const masks positive = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
    doubles sum[COLUMNS] = { { 0 } }, all[COLUMNS] = { { 0 } };
    int64_t p = 0;
    for (; p + WIDTH <= k; p += WIDTH) {
        doubles x = __builtin_convertvector(*(const floats *)(a + p), doubles);
        for (int c = 0; c < COLUMNS; c++) {
            doubles xy = x * __builtin_convertvector(*(const floats *)(b[c] + p), doubles);
            sum[c] += xy;
            all[c] += (doubles)((masks)xy & positive);
        }
    }
    for (int c = 0; c < COLUMNS; c++) {
        value[c] = product[c] = 0;
        for (int x = 0; x < WIDTH; x++) {
            value[c] += sum[c][x];
            product[c] += all[c][x];
        }
        for (int64_t q = p; q < k; q++) {
            value[c] += (double)a[q] * (double)b[c][q];
            product[c] += fabs((double)a[q] * (double)b[c][q]);
        }
    }
}

__attribute__((target("avx2,fma"))) static void dots_avx2(int64_t k, const float *a, const float *const *b,
                                                          double *value, double *product)
{
    dots_body(k, a, b, value, product);
}
static void dots_any(int64_t k, const float *a, const float *const *b, double *value, double *product)
{
    dots_body(k, a, b, value, product);
}

/* One sampled row times every sampled column. */
static void truth_row(int64_t x, void *what)
{
    const accuracy_truth *t = what;
    void (*dots)(int64_t, const float *, const float *const *, double *, double *) =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? dots_avx2 : dots_any;
    const float *a = t->a + accuracy_place(t->m, t->side, (int)x) * t->k, *b[COLUMNS];
    for (int y = 0; y < t->side; y += COLUMNS) {
        double value[COLUMNS], product[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            b[c] = t->b + accuracy_place(t->n, t->side, y + c < t->side ? y + c : y) * t->k;
        dots(t->k, a, b, value, product);
        for (int c = 0; c < COLUMNS && y + c < t->side; c++) {
            t->value[x + (int64_t)(y + c) * t->side] = value[c];
            t->product[x + (int64_t)(y + c) * t->side] = product[c];
        }
    }
}

void accuracy_truth_find(accuracy_truth *t) { accuracy_parallel(truth_row, t->side, t); }

static double off_at(const accuracy_truth *t, const float *c, int x, int y)
{
    double got = (double)c[accuracy_place(t->m, t->side, x) + accuracy_place(t->n, t->side, y) * t->m];
    double off = fabs(got - t->value[x + (int64_t)y * t->side]);
    return isnan(off) ? INFINITY : off;
}

void accuracy_note_exact(const accuracy_truth *t, const float *c, bool *exact)
{
    for (int y = 0; y < t->side; y++)
        for (int x = 0; x < t->side; x++) {
            int64_t at = x + (int64_t)y * t->side;
            exact[at] = off_at(t, c, x, y) == 0 && t->product[at] <= ACCURACY_EXACT_SUM;
        }
}

accuracy_error accuracy_measure(const accuracy_truth *t, const float *c, const bool *exact)
{
    accuracy_error e = { .wrong = 0 };
    const gpb_call g = { .type = GPB_TYPE_s, .k = t->k, .alpha = 1 };
    double squares = 0, norm = 0, truth = 0;
    int64_t count = 0;
    for (int y = 0; y < t->side; y++)
        for (int x = 0; x < t->side; x++) {
            int64_t at = x + (int64_t)y * t->side;
            double off = off_at(t, c, x, y);
            if (off != 0 && (t->product[at] == 0 || (exact && exact[at]))) e.wrong++;
            norm += off * off;
            truth += t->value[at] * t->value[at];
            if (t->product[at] == 0) continue;
            double u = off / t->product[at] * 0x1p24;
            const gpb_reference_element truly = { .value = t->value[at], .product = t->product[at] };
            e.max = fmax(e.max, u);
            e.bound = fmax(e.bound, off / gpb_reference_bound(GPB_MATH_FMA, &g, truly));
            e.bound_tf32 = fmax(e.bound_tf32, off / gpb_reference_bound(GPB_MATH_TF32, &g, truly));
            squares += u * u;
            count++;
        }
    e.rms = count ? sqrt(squares / (double)count) : 0;
    e.frobenius = norm == 0 ? 0 : sqrt(norm / truth);
    return e;
}
