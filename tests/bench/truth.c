/* SPDX-License-Identifier: MIT */
/* Is C right? Some columns of it, among them the last, and some rows of these are compared with FP64, and
   with what one chain of FP32 FMAs makes of the same numbers. A kernel that lost a promotion of its sums, or
   a slice, is within any bound that grows with k. Compared with that chain it is seen. */
#include <math.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

enum {
    ROWS = 1024, COLUMNS = 32, ENTRIES = 1024, MIN_ENTRIES = 8, PRODUCTS = 1 << 23,
    PATCH_FLOATS = 1 << 18, PATCHES = 2
};

/* Columns that lie side by side in one member of a batch, all of them or those chosen. */
static struct patch { int member, column, width; } patches[PATCHES];
static struct { int patch, j; } columns[COLUMNS];
static int rows[ROWS], row_count, column_count;
static struct entry { double value, product, chain; } entries[ROWS][COLUMNS];

static int least(double a, double b) { return (int)fmin(a, b); }

/* The last row and the last column, where edges go wrong, and the first row, where the data may be odd
   (data.c), are always among them. */
static void choose(const gpu_problem *p)
{
    const double budget = fmax(MIN_ENTRIES, fmin(ENTRIES, (double)PRODUCTS / p->of.k));
    const int width = (int)fmax(1, least(p->of.n, PATCH_FLOATS / p->of.ld[GPB_C]));
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

/* A row of entries: the columns' sums side by side. y: the columns' elements, those of one q side by side. */
static void compute(struct entry *to, const float *x, const float *y, int k, float beta)
{
    double value[COLUMNS] = { 0 }, product[COLUMNS] = { 0 }, chain[COLUMNS] = { 0 };
    for (int q = 0; q < k; q++)
        for (int j = 0; j < COLUMNS; j++) {
            const double term = (double)x[q] * (double)y[(size_t)q * COLUMNS + (size_t)j];      /* exact */
            value[j] += term;
            product[j] += fabs(term);
            chain[j] = (double)(float)(chain[j] + term);
        }
    for (int j = 0; j < COLUMNS; j++)
        to[j] = (struct entry){ value[j], product[j],
                                (double)(float)(chain[j] + (double)beta) - (double)beta };
}

void gpu_truth(const gpu_problem *p)
{
    float *y = bench_memory(sizeof *y * COLUMNS * (size_t)p->of.k);
    float *x = bench_memory(sizeof *x * (size_t)p->of.k);
    choose(p);
    const int passes = p->of.batch > 1 ? PATCHES : 1;             /* a row of A is another in each member */
    for (int patch = 0; patch < passes; patch++) {
        const int member = patches[patch].member;
        for (int q = 0; q < p->of.k; q++)
            for (int j = 0; j < COLUMNS; j++) {
                const bool is_here = j < column_count && (passes == 1 || columns[j].patch == patch);
                y[(size_t)q * COLUMNS + (size_t)j] = is_here ? gpu_element_b(p, member, q, columns[j].j) : 0;
            }
        for (int i = 0; i < row_count; i++) {
            struct entry all[COLUMNS];
            for (int q = 0; q < p->of.k; q++) x[q] = gpu_element_a(p, member, rows[i], q);
            compute(all, x, y, p->of.k, p->beta);
            for (int j = 0; j < column_count; j++)
                if (passes == 1 || columns[j].patch == patch) entries[i][j] = all[j];
        }
    }
    free(x);
    free(y);
}

int gpu_truth_entries(void) { return row_count * column_count; }

/* Adds |e| / |A||B| of an entry. An entry that is to be NaN has no error if it is. */
static void add(gpu_error *sum, const struct entry *e, double got)
{
    const double error = isnan(e->value) ? (isnan(got) ? 0 : NAN)
        : got == e->value                ? 0
                                         : fabs(got - e->value) / e->product * 0x1p24;
    sum->worst = isnan(error) || isnan(sum->worst) ? NAN : fmax(sum->worst, error);
    sum->rms += error * error;
}

static gpu_error mean(gpu_error sum) { return (gpu_error){ sum.worst, sqrt(sum.rms / gpu_truth_entries()) }; }

gpu_error gpu_truth_chain(void)
{
    gpu_error sum = { 0, 0 };
    for (int i = 0; i < row_count; i++)
        for (int j = 0; j < column_count; j++) add(&sum, &entries[i][j], entries[i][j].chain);
    return mean(sum);
}

gpu_error gpu_judged(enum gpu_who who, const gpu_problem *p)
{
    float *c[PATCHES];
    gpu_error sum = { 0, 0 };
    for (int x = 0; x < PATCHES; x++) {
        const size_t floats = (size_t)(patches[x].width - 1) * (size_t)p->of.ld[GPB_C] + (size_t)p->of.m;
        c[x] = bench_memory(4 * floats);
        gpb_poison(GPB_TYPE_s, c[x], (int64_t)floats);
        for (size_t y = 0; y < floats && p->beta != 0; y++) c[x][y] = 1;
        MUST(cuMemcpyHtoD_v2(gpu_place_c(p, patches[x].member, patches[x].column), c[x], 4 * floats));
    }
    gpu_multiply(who, p, 0);
    MUST(cuStreamSynchronize(NULL));
    for (int x = 0; x < PATCHES; x++) {
        const size_t floats = (size_t)(patches[x].width - 1) * (size_t)p->of.ld[GPB_C] + (size_t)p->of.m;
        MUST(cuMemcpyDtoH_v2(c[x], gpu_place_c(p, patches[x].member, patches[x].column), 4 * floats));
        for (int j = 0; j < column_count; j++)
            for (int i = 0; i < row_count && columns[j].patch == x; i++)
                add(&sum, &entries[i][j],
                    (double)c[x][rows[i] + (int64_t)(columns[j].j - patches[x].column) * p->of.ld[GPB_C]]
                        - (double)p->beta);
        free(c[x]);
    }
    return mean(sum);
}
