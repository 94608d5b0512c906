/* SPDX-License-Identifier: MIT */
/* Is C right? Some columns of it, among them the last, and some rows of these are compared with sums of twice
   the precision, and with what one chain of the type's FMAs makes of the same numbers. A kernel that lost a
   promotion of its sums, or a slice, is within any bound that grows with k. Compared with that chain it is
   seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

enum {
    ROWS = 1024, COLUMNS = 32, ENTRIES = 1024, MIN_ENTRIES = 8, PRODUCTS = 1 << 23,
    PATCH_ELEMENTS = 1 << 18, PATCHES = 2
};

/* Columns that lie side by side in one member of a batch, all of them or those chosen. */
static struct patch { int member, column, width; } patches[PATCHES];
static struct { int patch, j; } columns[COLUMNS];
static int rows[ROWS], row_count, column_count;
/* One part of an entry: the answer is value + rest, and a chain of FMAs is off by `chain`. */
static struct entry { double value, rest, product, chain; } entries[ROWS][COLUMNS][2];

static bool is_double(const gpu_problem *p) { return gpb_type_real_bytes(p->of.type) == sizeof(double); }
static double unit_of(const gpu_problem *p) { return is_double(p) ? 0x1p53 : 0x1p24; }

static int least(double a, double b) { return (int)fmin(a, b); }

/* The last row and the last column, where edges go wrong, and the first row, where the data may be odd
   (data.c), are always among them. */
static void choose(const gpu_problem *p)
{
    const double products = PRODUCTS / (is_double(p) ? 4 : 1) / (gpu_parts(p) * gpu_parts(p));
    const double budget = fmax(MIN_ENTRIES, fmin(ENTRIES, products / p->of.k));
    const int width = (int)fmax(1, least(p->of.n, PATCH_ELEMENTS / p->of.ld[GPB_C]));
    column_count = least(COLUMNS, fmin(PATCHES * width, fmax(budget / least(p->of.m, COLUMNS), 2)));
    row_count = least(ROWS, fmin(p->of.m, budget / column_count));
    for (int x = 0; x < PATCHES; x++)
        patches[x] = (struct patch){ x ? (int)(random() % p->of.batch) : p->of.batch - 1,
                                     x ? (int)(random() % (p->of.n - width + 1)) : p->of.n - width, width };
    for (int x = 0; x < column_count; x++) {
        const struct patch *in = &patches[x % PATCHES];
        columns[x].patch = x % PATCHES;
        columns[x].j = in->column + (x ? (int)(random() % width) : width - 1);
    }
    for (int x = 0; x < row_count; x++)
        rows[x] = x == 0 ? p->of.m - 1 : x == 1 ? 0 : (int)(random() % p->of.m);
}

/* Of a row: one part of its entries in all columns, as sums of `count` real products. to: every other entry,
   because both parts lie side by side. y: the columns' numbers, those of one product side by side. */
static void compute_single(struct entry *to, const double *x, const double *y, int count, double beta)
{
    double value[COLUMNS] = { 0 }, product[COLUMNS] = { 0 }, chain[COLUMNS] = { 0 };
    for (int q = 0; q < count; q++)
        for (int j = 0; j < column_count; j++) {
            const double term = x[q] * y[(size_t)q * COLUMNS + (size_t)j];                      /* exact */
            value[j] += term;
            product[j] += fabs(term);
            chain[j] = (double)(float)(chain[j] + term);
        }
    for (int j = 0; j < column_count; j++)
        to[2 * j] = (struct entry){ value[j], 0, product[j],
                                    (double)(float)(chain[j] + beta) - beta - value[j] };
}

/* Products and sums keep what they round off (tests/reference.c). */
static void compute_double(struct entry *to, const double *x, const double *y, int count, double beta)
{
    double value[COLUMNS] = { 0 }, rest[COLUMNS] = { 0 }, product[COLUMNS] = { 0 }, chain[COLUMNS] = { 0 };
    for (int q = 0; q < count; q++)
        for (int j = 0; j < column_count; j++) {
            const double other = y[(size_t)q * COLUMNS + (size_t)j], term = x[q] * other;
            const double sum = value[j] + term, before = sum - term;
            rest[j] += (value[j] - before) + (term - (sum - before)) + fma(x[q], other, -term);
            value[j] = sum;
            product[j] += fabs(term);
            chain[j] = fma(x[q], other, chain[j]);
        }
    for (int j = 0; j < column_count; j++)
        to[2 * j] = (struct entry){ value[j], rest[j], product[j],
                                    chain[j] + beta - beta - value[j] - rest[j] };
}

/* The columns' elements of a member. */
static void fetch_columns(const gpu_problem *p, int patch, int passes, double *y)
{
    const int parts = gpu_parts(p);
    for (int q = 0; q < p->of.k; q++)
        for (int j = 0; j < column_count; j++) {
            const bool is_here = passes == 1 || columns[j].patch == patch;
            double element[2] = { 0, 0 };
            if (is_here) gpu_element_b(p, patches[patch].member, q, columns[j].j, element);
            for (int part = 0; part < parts; part++)
                y[((size_t)q * (size_t)parts + (size_t)part) * COLUMNS + (size_t)j] = element[part];
        }
}

/* The numbers of a row that meet those of a column in one part of the entry: (re, -im) meets (re, im) in the
   real part, and (im, re) in the imaginary one. */
static void fetch_row(const gpu_problem *p, int member, int row, int part, double *x)
{
    const int parts = gpu_parts(p);
    for (int q = 0; q < p->of.k; q++) {
        double element[2];
        gpu_element_a(p, member, row, q, element);
        x[(size_t)q * (size_t)parts] = element[part];
        if (parts == 2) x[2 * (size_t)q + 1] = part ? element[0] : -element[1];
    }
}

/* True if the call writes the entry: of a triangle, the lower one. */
static bool is_judged(const gpu_problem *p, int i, int j)
{
    return !gpb_test_has_triangle(p->of.routine) || rows[i] >= columns[j].j;
}

/* False of an entry on a triangle's diagonal. It is a sum of squares, all of one sign, so its error grows all
   along and says nothing of the others. It counts as the largest error, and not for the mean of squares. */
static bool is_mean(const gpu_problem *p, int i, int j)
{
    return !gpb_test_has_triangle(p->of.routine) || rows[i] != columns[j].j;
}

static int judged;                                            /* entries of the last problem's mean */

void gpu_truth(const gpu_problem *p)
{
    const int parts = gpu_parts(p), count = p->of.k * parts;
    double *y = bench_memory(sizeof *y * COLUMNS * (size_t)count);
    double *x = bench_memory(sizeof *x * (size_t)count);
    choose(p);
    judged = 0;
    for (int i = 0; i < row_count; i++)
        for (int j = 0; j < column_count; j++) judged += is_judged(p, i, j) && is_mean(p, i, j);
    const int passes = p->of.batch > 1 ? PATCHES : 1;             /* a row of A is another in each member */
    for (int patch = 0; patch < passes; patch++) {
        fetch_columns(p, patch, passes, y);
        for (int i = 0; i < row_count; i++) {
            struct entry all[COLUMNS][2];
            for (int part = 0; part < parts; part++) {
                fetch_row(p, patches[patch].member, rows[i], part, x);
                (is_double(p) ? compute_double : compute_single)(&all[0][part], x, y, count, p->beta);
            }
            for (int j = 0; j < column_count; j++)
                if (passes == 1 || columns[j].patch == patch) memcpy(entries[i][j], all[j], sizeof all[j]);
        }
    }
    free(x);
    free(y);
}

int gpu_truth_entries(void) { return judged; }

/* Adds |e| / |A||B| of a part of an entry. One that is to be NaN has no error if it is. */
static void add(gpu_error *sum, const struct entry *e, double off, double unit, bool to_mean)
{
    const double error = off == 0 ? 0 : fabs(off) / e->product * unit;
    sum->worst = isnan(error) || isnan(sum->worst) ? NAN : fmax(sum->worst, error);
    if (to_mean) sum->rms += error * error;
}

static double off_by(const struct entry *e, double got)
{
    if (isnan(e->value)) return isnan(got) ? 0 : NAN;
    return got == e->value ? -e->rest : got - e->value - e->rest;
}

static gpu_error mean(gpu_error sum, int parts)
{
    return (gpu_error){ sum.worst, sqrt(sum.rms / (fmax(gpu_truth_entries(), 1) * parts)) };
}

gpu_error gpu_truth_chain(const gpu_problem *p)
{
    gpu_error sum = { 0, 0 };
    for (int i = 0; i < row_count; i++)
        for (int j = 0; j < column_count; j++)
            for (int part = 0; part < gpu_parts(p) && is_judged(p, i, j); part++) {
                const struct entry *e = &entries[i][j][part];
                add(&sum, e, isnan(e->value) ? 0 : e->chain, unit_of(p), is_mean(p, i, j));
            }
    return mean(sum, gpu_parts(p));
}

/* Number x of a piece of C. */
static double real_at(const gpu_problem *p, const void *c, size_t x)
{
    return is_double(p) ? ((const double *)c)[x] : (double)((const float *)c)[x];
}

static size_t elements_of(const gpu_problem *p, const struct patch *patch)
{
    return (size_t)(patch->width - 1) * (size_t)p->of.ld[GPB_C] + (size_t)p->of.m;
}

/* A patch of C before the call: poison, or ones where C is read. */
static void *put_patch(const gpu_problem *p, const struct patch *patch)
{
    const size_t elements = elements_of(p, patch), each = gpb_type_bytes(p->of.type);
    void *c = bench_memory(each * elements);
    gpb_poison(p->of.type, c, (int64_t)elements);
    for (size_t y = 0; y < elements * (size_t)gpu_parts(p) && p->beta != 0; y++) {
        if (is_double(p)) ((double *)c)[y] = 1;
        else ((float *)c)[y] = 1;
    }
    MUST(cuMemcpyHtoD_v2(gpu_place_c(p, patch->member, patch->column), c, each * elements));
    return c;
}

/* The chosen entries of patch x, which is in c. */
static void judge_patch(const gpu_problem *p, int x, const void *c, gpu_error *sum)
{
    const int parts = gpu_parts(p);
    for (int j = 0; j < column_count; j++)
        for (int i = 0; i < row_count && columns[j].patch == x; i++)
            for (int part = 0; part < parts && is_judged(p, i, j); part++) {
                const int64_t column = columns[j].j - patches[x].column;
                const size_t at = (size_t)(rows[i] + column * p->of.ld[GPB_C]) * (size_t)parts + (size_t)part;
                const struct entry *e = &entries[i][j][part];
                add(sum, e, off_by(e, real_at(p, c, at) - p->beta), unit_of(p), is_mean(p, i, j));
            }
}

gpu_error gpu_judged(enum gpu_who who, const gpu_problem *p)
{
    void *c[PATCHES];
    gpu_error sum = { 0, 0 };
    for (int x = 0; x < PATCHES; x++) c[x] = put_patch(p, &patches[x]);
    gpu_multiply(who, p, 0);
    MUST(cuStreamSynchronize(NULL));
    for (int x = 0; x < PATCHES; x++) {
        MUST(cuMemcpyDtoH_v2(c[x], gpu_place_c(p, patches[x].member, patches[x].column),
                             gpb_type_bytes(p->of.type) * elements_of(p, &patches[x])));
        judge_patch(p, x, c[x], &sum);
        free(c[x]);
    }
    return mean(sum, gpu_parts(p));
}
