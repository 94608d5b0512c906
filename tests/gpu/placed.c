/* SPDX-License-Identifier: MIT */
/* See placed.h. Everything is checked in column-major order (gpb_problem_call). */
#include "tests/gpu/placed.h"

#include "include/gpublas.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const enum gpb_fill placed_fills[PLACED_FILLS] = { GPB_FILL_uniform, GPB_FILL_wide, GPB_FILL_integer,
                                                   GPB_FILL_special, GPB_FILL_subnormal };
/* More than WHOLE multiply-adds are judged on a sample of C: SAMPLE entries, or as many as WORK products
   allow. */
enum { WHOLE = 1 << 27, SAMPLE = 20000, WORK = 200000000 };

static void *allocated(size_t count, size_t size)
{
    void *p = malloc(count * size + 1);
    if (p) return p;
    perror("malloc");
    exit(1);
}

static size_t bytes_of(const operand *o) { return (size_t)(o->offset + o->count) * gpb_type_bytes(o->type); }

/* An element of an operand, or of a copy of its allocation. */
static const char *element(const operand *o, const void *allocation, int64_t at)
{
    return (const char *)allocation + (o->offset + at) * (int64_t)gpb_type_bytes(o->type);
}

/* The problem as the doors see it, operands by their images. */
static gpb_call canonical(const placed *p, float alpha, float beta)
{
    const operand *a = &p->x[GPB_A], *b = &p->x[GPB_B];
    return gpb_problem_call(&p->of, (double)alpha, (double)beta, element(a, a->image, 0),
                            element(b, b->image, 0), NULL);
}

bool placed_is_large(const placed *p)
{
    return gpb_test_row_of(p->of.routine)->fmas(p->of.m, p->of.n, p->of.k) > WHOLE;
}

/* Which entries of C are checked, and what A B is there. */
static void choose_entries(placed *p)
{
    const gpb_call g = canonical(p, 1, 0);
    const int64_t all = g.m * g.n, sample = (int64_t)SAMPLE * g.k < WORK ? SAMPLE : WORK / g.k;
    p->entries = placed_is_large(p) ? sample : all;
    p->entry = allocated((size_t)p->entries, sizeof *p->entry);
    p->sums = allocated((size_t)p->entries, sizeof *p->sums);
    for (int64_t x = 0; x < p->entries; x++) {
        p->entry[x] = placed_is_large(p) ? (int64_t)((uint64_t)x * 0x9e3779b97f4a7c15u % (uint64_t)all) : x;
        gpb_reference_sums(&g, p->entry[x] % g.m, p->entry[x] / g.m, 0, p->sums[x]);
    }
}

void placed_make(placed *p)
{
    const uint64_t seed = (uint64_t)p->of.m * 73856093u ^ (uint64_t)p->of.n * 19349663u
        ^ (uint64_t)p->of.k * 83492791u;
    gpb_problem_lay_out(&p->of);
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++)
        p->x[x] = operand_make(p->at[x], p->of.type, gpb_problem_span(&p->of, x), p->of.offset);
    for (enum gpb_operand x = GPB_A; x < GPB_C; x++) {
        gpb_problem_fill(&p->of, x, p->x[x].image, seed + (x == GPB_B));
        operand_put(&p->x[x]);
    }
    choose_entries(p);
}

void placed_free(placed *p)
{
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) operand_free(&p->x[x]);
    free(p->entry);
    free(p->sums);
}

void placed_fill_c(placed *p, float beta)
{
    gpb_problem_fill_c(&p->of, (double)beta, p->x[GPB_C].image);
    operand_put(&p->x[GPB_C]);
}

static int cblas_trans(char trans)
{
    return toupper(trans) == 'N' ? NO_TRANS : toupper(trans) == 'T' ? TRANS : CONJ_TRANS;
}

void placed_call(const placed *p, float alpha, float beta)
{
    const gpb_problem *of = &p->of;
    cblas_sgemm(of->row_major ? ROW_MAJOR : COLUMN_MAJOR, cblas_trans(of->transa), cblas_trans(of->transb),
                of->m, of->n, of->k, alpha, p->x[GPB_A].address, of->ld[GPB_A], p->x[GPB_B].address,
                of->ld[GPB_B], beta, p->x[GPB_C].address, of->ld[GPB_C]);
}

static bool fault(const placed *p, const char *what, int64_t i, int64_t j, double got, double wanted)
{
    const gpb_problem *of = &p->of;
    fprintf(stderr, "%s (%lld,%lld): %.9g instead of %.17g\n", what, (long long)i, (long long)j, got, wanted);
    fprintf(stderr, "  m %d n %d k %d trans %c%c by %s, lda %d ldb %d ldc %d offset %d, %s, A %s B %s C %s\n",
            of->m, of->n, of->k, of->transa, of->transb, of->row_major ? "rows" : "columns", of->ld[GPB_A],
            of->ld[GPB_B], of->ld[GPB_C], of->offset, gpb_fill_names[of->fill], place_names[p->at[GPB_A]],
            place_names[p->at[GPB_B]], place_names[p->at[GPB_C]]);
    return false;
}

static int parts_of(const placed *p) { return gpb_type_of(p->of.type)->kind == GPB_TYPE_COMPLEX ? 2 : 1; }

/* Integers have to be exact. What is finite has to stay so. */
static bool is_right(const placed *p, const gpb_call *g, enum gpb_math math,
                     const gpb_reference_element sums[2], const char *before, const char *after)
{
    const bool exact = p->of.fill == GPB_FILL_integer && g->alpha == rint((double)g->alpha)
                       && g->beta == rint((double)g->beta);
    for (int part = 0; part < parts_of(p); part++) {
        const gpb_reference_element wanted = gpb_reference_scaled(g, sums, before, part);
        if (!(gpb_reference_error(math, g, wanted, after, part) <= !exact)) return false;
        if (isfinite(wanted.value) && !isfinite(gpb_reference_value(g, after, part))) return false;
    }
    return true;
}

/* Outside its block C is byte for byte as it was. With beta == 0 and finite data no poison is left inside. */
static bool is_whole(const placed *p, const gpb_call *g, const char *after)
{
    const operand *c = &p->x[GPB_C];
    const size_t each = gpb_type_bytes(c->type);
    for (int64_t at = -c->offset; at < c->count; at++) {
        const bool mine = gpb_problem_owns(&p->of, GPB_C, at + c->offset);
        const char *now = element(c, after, at), *before = element(c, c->image, at);
        const int64_t i = at % g->x[GPB_C].ld, j = at / g->x[GPB_C].ld;
        const double got = gpb_reference_value(g, now, 0);
        if (mine && g->beta == 0 && p->of.fill != GPB_FILL_special && isnan(got))
            return fault(p, "not written", i, j, got, 0);
        if (!mine && memcmp(now, before, each))
            return fault(p, "outside C", i, j, got, gpb_reference_value(g, before, 0));
    }
    return true;
}

static bool is_untouched(const placed *p, enum gpb_operand x)
{
    const operand *o = &p->x[x];
    void *now = allocated(bytes_of(o), 1);
    operand_get(o, now);
    const bool same = !memcmp(now, o->image, bytes_of(o));
    free(now);
    return same || fault(p, x == GPB_A ? "A was written" : "B was written", 0, 0, 0, 0);
}

bool placed_check(const placed *p, float alpha, float beta, enum gpb_math math)
{
    const operand *c = &p->x[GPB_C];
    char *after = allocated(bytes_of(c), 1);
    operand_get(c, after);
    const gpb_call g = canonical(p, alpha, beta);
    bool right = is_whole(p, &g, after) && is_untouched(p, GPB_A) && is_untouched(p, GPB_B);
    for (int64_t x = 0; x < p->entries && right; x++) {
        const int64_t i = p->entry[x] % g.m, j = p->entry[x] / g.m, at = i + j * g.x[GPB_C].ld;
        right = is_right(p, &g, math, p->sums[x], element(c, c->image, at), element(c, after, at));
        if (!right)
            fault(p, "C, before beta C is added,", i, j, gpb_reference_value(&g, element(c, after, at), 0),
                  (double)g.alpha * p->sums[x][0].value);
    }
    if (!right) fprintf(stderr, "  alpha %g beta %g\n", (double)alpha, (double)beta);
    free(after);
    return right;
}

bool placed_try(placed *p, float alpha, float beta, enum gpb_math math)
{
    placed_fill_c(p, beta);
    placed_call(p, alpha, beta);
    return placed_check(p, alpha, beta, math);
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
