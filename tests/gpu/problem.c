/* SPDX-License-Identifier: MIT */
/* See problem.h. Everything is checked in column-major order: a row-major problem is C' = B' A', as in the
   library's doors. */
#include "tests/gpu/problem.h"

#include "include/gpublas.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fill_names[FILLS] = { "uniform", "wide", "integer", "special", "subnormal" };
/* m*n*k beyond WHOLE is judged on a sample of C: SAMPLE entries, or as many as WORK products allow. */
enum { WHOLE = 1 << 27, SAMPLE = 20000, WORK = 200000000 };

static void *allocated(size_t count, size_t size)
{
    void *p = malloc(count * size + 1);
    if (p) return p;
    perror("malloc");
    exit(1);
}

/* x: uniform in (-1, 1) */
static float shaped(float x, enum fill fill)
{
    switch (fill) {
    case FILL_WIDE: return copysignf(exp2f(40 * fabsf(x) - 20), x);
    case FILL_INTEGER: return (float)(int)(8 * x);
    case FILL_SPECIAL: return x > 0.999f ? NAN : x > 0.998f ? INFINITY : x < -0.999f ? -INFINITY : x;
    case FILL_SUBNORMAL: return x * 0x1p-66f;
    default: return x;
    }
}

static float pattern(int64_t i)                   /* a NaN that says where it stood */
{
    uint32_t bits = 0x7fc00000u | (uint32_t)(i & 0x3fffff);
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static bool inside(const operand *o, int64_t i, int lead, int ld) { return i >= o->offset && (i - o->offset) % ld < lead; }

/* Padding and the space before the first element are NaN: use of them poisons the answer. */
static void fill_operand(operand *o, int lead, int ld, enum fill fill, uint64_t seed)
{
    gpb_reference_fill(o->image, (size_t)(o->offset + o->count), seed);
    for (int64_t i = 0; i < o->offset + o->count; i++)
        o->image[i] = inside(o, i, lead, ld) ? shaped(o->image[i], fill) : pattern(i);
    operand_put(o);
}

/* An operand is `lines` runs of `lead` floats, ld apart: columns, or rows in row-major order. */
static int lead_of(const problem *p, int rows, int cols, char trans)
{
    return (toupper(trans) != 'N') != p->row_major ? cols : rows;
}

static operand made(const problem *p, int which, int rows, int cols, char trans, int *ld)
{
    int lead = lead_of(p, rows, cols, trans), lines = rows + cols - lead;
    *ld = (lead > 1 ? lead : 1) + p->pad;
    return operand_make(p->at[which], lead && lines ? (int64_t)(lines - 1) * *ld + lead : 0, p->offset);
}

/* The problem as the doors see it, operands by their images. */
static gpb_call canonical(const problem *p, float alpha, float beta)
{
    const float *a = p->a.image + p->a.offset, *b = p->b.image + p->b.offset;
    char transa = (char)toupper(p->transa), transb = (char)toupper(p->transb);
    gpb_call g = { .type = GPB_TYPE_s, .x[GPB_C].uplo = 'G', .k = p->k, .x[GPB_C].ld = p->ldc, .batch = 1 };
    g.alpha = (double)alpha;
    g.beta = (double)beta;
    g.m = p->row_major ? p->n : p->m;
    g.n = p->row_major ? p->m : p->n;
    g.x[GPB_A].trans = p->row_major ? transb : transa;
    g.x[GPB_B].trans = p->row_major ? transa : transb;
    g.x[GPB_A].base = p->row_major ? b : a;
    g.x[GPB_B].base = p->row_major ? a : b;
    g.x[GPB_A].ld = p->row_major ? p->ldb : p->lda;
    g.x[GPB_B].ld = p->row_major ? p->lda : p->ldb;
    return g;
}

bool problem_is_large(const problem *p) { return (double)p->m * p->n * p->k > WHOLE; }

void problem_make(problem *p)
{
    uint64_t seed = (uint64_t)p->m * 73856093u ^ (uint64_t)p->n * 19349663u ^ (uint64_t)p->k * 83492791u;
    p->a = made(p, 0, p->m, p->k, p->transa, &p->lda);
    p->b = made(p, 1, p->k, p->n, p->transb, &p->ldb);
    p->c = made(p, 2, p->m, p->n, 'N', &p->ldc);
    fill_operand(&p->a, lead_of(p, p->m, p->k, p->transa), p->lda, p->fill, seed);
    fill_operand(&p->b, lead_of(p, p->k, p->n, p->transb), p->ldb, p->fill, seed + 1);
    gpb_call g = canonical(p, 1, 0);
    int64_t sample = (int64_t)SAMPLE * p->k < WORK ? SAMPLE : WORK / p->k;
    p->entries = problem_is_large(p) ? sample : g.m * g.n;
    p->entry = allocated((size_t)p->entries, sizeof *p->entry);
    p->element = allocated((size_t)p->entries, sizeof *p->element);
    for (int64_t x = 0; x < p->entries; x++) {
        p->entry[x] = problem_is_large(p) ? (int64_t)((uint64_t)x * 0x9e3779b97f4a7c15u % (uint64_t)(g.m * g.n)) : x;
        p->element[x] = gpb_reference_at(&g, NULL, p->entry[x] % g.m, p->entry[x] / g.m, 0);
    }
}

void problem_free(problem *p)
{
    operand_free(&p->a);
    operand_free(&p->b);
    operand_free(&p->c);
    free(p->entry);
    free(p->element);
}

void problem_fill_c(problem *p, float beta)
{
    gpb_call g = canonical(p, 1, beta);
    fill_operand(&p->c, beta != 0 ? (int)g.m : 0, p->ldc, p->fill, 7);
    if (p->fill != FILL_SUBNORMAL) return;
    for (int64_t i = 0; i < p->c.offset + p->c.count; i++)        /* as small as the products */
        if (!isnan(p->c.image[i])) p->c.image[i] *= 0x1p-66f;
    operand_put(&p->c);
}

static int cblas_trans(char trans)
{
    return toupper(trans) == 'N' ? NO_TRANS : toupper(trans) == 'T' ? TRANS : CONJ_TRANS;
}

void problem_call(const problem *p, float alpha, float beta)
{
    cblas_sgemm(p->row_major ? ROW_MAJOR : COLUMN_MAJOR, cblas_trans(p->transa), cblas_trans(p->transb), p->m, p->n, p->k, alpha,
                p->a.address, p->lda, p->b.address, p->ldb, beta, p->c.address, p->ldc);
}

static bool fault(const problem *p, const char *what, int64_t i, int64_t j, double got, double wanted)
{
    fprintf(stderr, "%s (%lld,%lld): %.9g instead of %.17g\n", what, (long long)i, (long long)j, got, wanted);
    fprintf(stderr, "  m %d n %d k %d trans %c%c by %s, lda %d ldb %d ldc %d offset %d, %s, A %s B %s C %s\n", p->m, p->n, p->k,
            p->transa, p->transb, p->row_major ? "rows" : "columns", p->lda, p->ldb, p->ldc, p->offset, fill_names[p->fill],
            place_names[p->at[0]], place_names[p->at[1]], place_names[p->at[2]]);
    return false;
}

/* e: the sums with alpha = 1 and beta = 0; `before`: what C was. */
static bool is_right(const problem *p, const gpb_call *g, enum gpb_math math, gpb_reference_element e, float before, float after)
{
    bool multiplied = g->alpha != 0 && g->k != 0;
    double got = (double)after, old = g->beta != 0 ? g->beta * (double)before : 0;
    gpb_reference_element wanted = { .value = old, .old = fabs(old) };
    if (multiplied) wanted.value += g->alpha * e.value;
    if (multiplied) wanted.product = fabs((double)g->alpha) * e.product;
    if (isnan(wanted.value)) return isnan(got);
    bool exact = isinf(wanted.value) || (p->fill == FILL_INTEGER && g->alpha == rint(g->alpha) && g->beta == rint(g->beta));
    return exact ? got == wanted.value : fabs(got - wanted.value) <= gpb_reference_bound(math, g, wanted);
}

/* Outside its block C is byte for byte as it was; with beta == 0 and finite data nothing of the poison is left inside. */
static bool is_whole(const problem *p, const gpb_call *g, const float *after)
{
    for (int64_t i = 0; i < p->c.offset + p->c.count; i++) {
        bool mine = inside(&p->c, i, (int)g->m, p->ldc);
        int64_t at = i - p->c.offset;
        if (mine && g->beta == 0 && p->fill != FILL_SPECIAL && isnan(after[i]))
            return fault(p, "not written", at % p->ldc, at / p->ldc, (double)after[i], 0);
        if (!mine && memcmp(&after[i], &p->c.image[i], 4))
            return fault(p, "outside C", at % p->ldc, at / p->ldc, (double)after[i], (double)p->c.image[i]);
    }
    return true;
}

static bool is_untouched(const problem *p, const operand *o)
{
    size_t bytes = 4 * (size_t)(o->offset + o->count);
    float *now = allocated(bytes, 1);
    operand_get(o, now);
    bool same = !memcmp(now, o->image, bytes);
    free(now);
    return same || fault(p, o == &p->a ? "A was written" : "B was written", 0, 0, 0, 0);
}

bool problem_check(const problem *p, float alpha, float beta, enum gpb_math math)
{
    float *after = allocated((size_t)(p->c.offset + p->c.count), sizeof *after);
    operand_get(&p->c, after);
    gpb_call g = canonical(p, alpha, beta);
    bool right = is_whole(p, &g, after) && is_untouched(p, &p->a) && is_untouched(p, &p->b);
    for (int64_t x = 0; x < p->entries && right; x++) {
        int64_t i = p->entry[x] % g.m, j = p->entry[x] / g.m, at = p->c.offset + i + j * p->ldc;
        right = is_right(p, &g, math, p->element[x], p->c.image[at], after[at]);
        if (!right) fault(p, "C, before beta C is added,", i, j, (double)after[at], g.alpha * p->element[x].value);
    }
    if (!right) fprintf(stderr, "  alpha %g beta %g\n", (double)g.alpha, (double)g.beta);
    free(after);
    return right;
}

bool problem_try(problem *p, float alpha, float beta, enum gpb_math math)
{
    problem_fill_c(p, beta);
    problem_call(p, alpha, beta);
    return problem_check(p, alpha, beta, math);
}

int64_t gpu_calls(void)
{
    gpublas_stats_t stats;
    if (gpublas_stats(&stats, sizeof stats)) exit(1);
    return (int64_t)stats.gpu_calls;
}

bool kernel_runs(const char *image)
{
    static const struct { const char *image, *arch; } images[] = {
#define IMAGE(name, p, arch) { #name, #arch },
#include "kernels/images.def"
#undef IMAGE
    };
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        if (strcmp(images[i].image, image)) continue;
        char *letter;
        long least = strtol(images[i].arch, &letter, 10);      /* with a letter: exactly that one */
        return *letter ? gpu_arch() == least : gpu_arch() >= least;
    }
    return false;
}

void set_option(const char *name, const char *value)
{
    if (!gpublas_set_option(name, value)) return;
    fprintf(stderr, "gpublas_set_option(\"%s\", \"%s\") failed\n", name, value ? value : "(default)");
    exit(1);
}
