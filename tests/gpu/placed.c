/* SPDX-License-Identifier: MIT */
/* See placed.h. Everything is checked in column-major order (gpb_problem_call). */
#include "tests/gpu/placed.h"

#include "include/gpublas.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/cores.h"

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

/* The problem as the doors see it, operands by their images, the scalars as its type holds them. */
static gpb_call canonical(const placed *p, gpb_scalar alpha, gpb_scalar beta)
{
    const operand *a = &p->x[GPB_A], *b = &p->x[GPB_B];
    gpb_call g = gpb_problem_call(&p->of, call_rounded(p->of.type, alpha), call_rounded(p->of.type, beta),
                                  element(a, a->image, 0), element(b, b->image, 0), NULL);
    const bool one = gpb_test_one_matrix(p->of.routine);
    const int first = p->of.row_major && !one ? GPB_B : GPB_A;        /* row-major, B is the first operand */
    g.x[GPB_A].stride = p->stride[first];
    g.x[GPB_B].stride = p->stride[one ? GPB_A : GPB_B - first];
    g.x[GPB_C].stride = p->stride[GPB_C];
    return g;
}

static double work_of(const placed *p)
{
    return gpb_test_row_of(p->of.routine)->fmas(p->of.m, p->of.n, p->of.k) * (p->of.batch ? p->of.batch : 1);
}

bool placed_is_large(const placed *p) { return work_of(p) > WHOLE; }

/* The place of an entry of C: the member, and row and column in it. */
typedef struct place_in_c { int64_t i, j, l; } place_in_c;

static place_in_c place_of(const gpb_call *g, int64_t entry)
{
    return (place_in_c){ entry % g->m, entry / g->m % g->n, entry / g->m / g->n };
}

/* True if the call writes it. */
static bool is_written(const gpb_call *g, int64_t i, int64_t j)
{
    const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
    return i >= rows.first && i < rows.last;
}

/* Which entries of C are checked. */
static void choose_entries(placed *p, const gpb_call *g)
{
    const int64_t all = g->m * g->n * g->batch, sample = (int64_t)SAMPLE * g->k < WORK ? SAMPLE : WORK / g->k;
    const int64_t wanted = placed_is_large(p) ? sample : all;
    p->entry = allocated((size_t)wanted, sizeof *p->entry);
    p->entries = 0;
    for (int64_t x = 0; x < wanted; x++) {
        const uint64_t hash = (uint64_t)x * 0x9e3779b97f4a7c15u;
        const int64_t entry = placed_is_large(p) ? (int64_t)(hash % (uint64_t)all) : x;
        const place_in_c at = place_of(g, entry);
        if (is_written(g, at.i, at.j)) p->entry[p->entries++] = entry;
    }
}

typedef struct sums_of {
    const placed *p;
    const gpb_call *g;
    const gpb_reference_lines *lines;
} sums_of;

static void sum_entry(void *of, int64_t x)
{
    const sums_of *s = of;
    const place_in_c at = place_of(s->g, s->p->entry[x]);
    if (s->lines) gpb_reference_lines_sums(s->lines, at.i, at.j, at.l, s->p->sums[x]);
    else gpb_reference_sums(s->g, at.i, at.j, at.l, s->p->sums[x]);
}

/* Members of a batch lie `pad` elements apart, and at addresses of every alignment if the first is odd. */
static void place_members(placed *p, enum gpb_operand x)
{
    const int64_t span = gpb_problem_span(&p->of, x);
    p->stride[x] = span + p->of.pad + p->of.offset % 2;
}

static int64_t members_of(const placed *p) { return p->of.batch ? p->of.batch : 1; }

/* Fills each member's elements. Between them lies poison. */
static void fill_members(const placed *p, enum gpb_operand x, void *image, uint64_t seed)
{
    const int64_t lead = gpb_problem_lead(&p->of, x), span = gpb_problem_span(&p->of, x);
    const size_t each = gpb_type_bytes(p->of.type);
    gpb_poison(p->of.type, image, p->x[x].offset + p->x[x].count);
    for (int64_t l = 0; l < members_of(p); l++)
        for (int64_t at = 0; at < span; at += p->of.ld[x])
            gpb_test_row_of(p->of.routine)->fill(p->of.fill, p->of.type,
                (char *)image + (size_t)(p->of.offset + l * p->stride[x] + at) * each, lead, &seed);
    gpb_problem_poison_mirror(&p->of, x, (char *)image + (size_t)p->of.offset * each);
}

void placed_make(placed *p)
{
    const uint64_t seed = (uint64_t)p->of.m * 73856093u ^ (uint64_t)p->of.n * 19349663u
        ^ (uint64_t)p->of.k * 83492791u;
    gpb_problem_lay_out(&p->of);
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) {
        place_members(p, x);
        const int64_t span = gpb_problem_span(&p->of, x);
        p->x[x] = operand_make_shifted(p->at[x], p->of.type, (members_of(p) - 1) * p->stride[x] + span,
                                       p->of.offset, p->shift);
    }
    for (enum gpb_operand x = GPB_A; x < GPB_C; x++) {
        fill_members(p, x, p->x[x].image, seed + (x == GPB_B));
        operand_put(&p->x[x]);
    }
    const gpb_call g = canonical(p, 1, 0);
    choose_entries(p, &g);
    p->sums = allocated((size_t)p->entries, sizeof *p->sums);
    gpb_reference_lines *lines = gpb_reference_lines_make(&g, p->entries);
    cores_each(p->entries, g.k, sum_entry, &(sums_of){ p, &g, lines });
    gpb_reference_lines_free(lines);
}

void placed_free(placed *p)
{
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) operand_free(&p->x[x]);
    free(p->entry);
    free(p->sums);
}

void placed_fill_c(placed *p, gpb_scalar beta)
{
    placed like = *p;
    if (p->of.fill == GPB_FILL_subnormal) like.of.fill = GPB_FILL_subnormal_c;
    if (call_rounded(p->of.type, beta) == 0)
        gpb_poison(p->of.type, p->x[GPB_C].image, p->x[GPB_C].offset + p->x[GPB_C].count);
    else fill_members(&like, GPB_C, p->x[GPB_C].image, 7);
    operand_put(&p->x[GPB_C]);
}

void placed_call(const placed *p, gpb_scalar alpha, gpb_scalar beta)
{
    void *const at[GPB_OPERANDS] = { p->x[GPB_A].address, p->x[GPB_B].address, p->x[GPB_C].address };
    call_through_cblas(&p->of, alpha, beta, at, p->stride);
}

static bool fault(const placed *p, const char *what, place_in_c at, double got, double wanted)
{
    const gpb_problem *of = &p->of;
    fprintf(stderr, "%s (%lld,%lld) of member %lld: %.17g instead of %.17g\n", what, (long long)at.i,
            (long long)at.j, (long long)at.l, got, wanted);
    fprintf(stderr, "  %c%s m %d n %d k %d trans %c%c uplo %c batch %d by %s, ",
            gpb_type_of(of->type)->letter, gpb_test_row_of(of->routine)->name, of->m, of->n, of->k,
            of->transa, of->transb, of->uplo ? of->uplo : 'G', of->batch, of->row_major ? "rows" : "columns");
    fprintf(stderr, "lda %d ldb %d ldc %d offset %d, ", of->ld[GPB_A], of->ld[GPB_B], of->ld[GPB_C],
            of->offset);
    fprintf(stderr, "%s, A %s B %s C %s\n", gpb_fill_names[of->fill], place_names[p->at[GPB_A]],
            place_names[p->at[GPB_B]], place_names[p->at[GPB_C]]);
    return false;
}

static int parts_of(const placed *p) { return gpb_type_of(p->of.type)->kind == GPB_TYPE_COMPLEX ? 2 : 1; }
static bool is_whole_number(gpb_scalar x)
{
    return __real__ x == rint(__real__ x) && __imag__ x == rint(__imag__ x);
}

/* Of a complex type, beta = 1 may leave C as it is, or multiply it by 1 + 0 i. netlib does the one for op(A)
   = A and the other for its transpose, and so an infinite part of C becomes NaN or not. */
static bool is_left_right(const gpb_call *g, enum gpb_math math,
                          const gpb_reference_element sums[GPB_REFERENCE_SUMS], const char *before,
                          const char *after, int part)
{
    if (g->beta != 1) return false;
    gpb_call product = *g;
    product.beta = 0;
    gpb_reference_element e = gpb_reference_scaled(&product, sums, NULL, part);
    const double old = gpb_reference_value(g, before, part);
    e.value += old;
    e.old = fabs(old);
    return gpb_reference_error(math, g, e, after, part) <= 1;
}

/* Integers have to be exact. What is finite has to stay so. */
static bool is_right(const placed *p, const gpb_call *g, enum gpb_math math,
                     const gpb_reference_element sums[GPB_REFERENCE_SUMS], const char *before,
                     const char *after, int part)
{
    const bool are_whole = is_whole_number(g->alpha) && is_whole_number(g->beta);
    const bool exact = p->of.fill == GPB_FILL_integer && are_whole;
    const gpb_reference_element wanted = gpb_reference_scaled(g, sums, before, part);
    if (isfinite(wanted.value) && !isfinite(gpb_reference_value(g, after, part))) return false;
    if (gpb_reference_error(math, g, wanted, after, part) <= !exact) return true;
    return p->of.fill == GPB_FILL_special && parts_of(p) == 2
        && is_left_right(g, math, sums, before, after, part);
}

/* A result that is looked at, and the first place of each kind of fault. */
typedef struct answer {
    const placed *p;
    const gpb_call *g;
    enum gpb_math math;
    const char *after;
    gpb_reference_quick quick;
    _Atomic int64_t unwritten, outside, wrong;
} answer;

static void found(_Atomic int64_t *first, int64_t at)
{
    int64_t before = atomic_load(first);
    while (at < before && !atomic_compare_exchange_weak(first, &before, at)) continue;
}

/* Counted from the first element of C. */
static place_in_c place_in_memory(const answer *x, int64_t at)
{
    const int64_t ld = x->g->x[GPB_C].ld;
    const int64_t stride = x->g->batch > 1 ? x->p->stride[GPB_C] : x->p->x[GPB_C].count + 1;
    return (place_in_c){ at % stride % ld, at % stride / ld, at / stride };
}

/* Outside its block C is byte for byte as it was. With beta == 0 and finite data no poison is left inside.
   `from`: counted from the beginning of the allocation. */
static void look_around(void *of, int64_t from)
{
    answer *x = of;
    const operand *c = &x->p->x[GPB_C];
    const int64_t at = from - c->offset;
    const place_in_c in = place_in_memory(x, at);
    const bool mine = at >= 0 && in.i < x->g->m && in.j < x->g->n && is_written(x->g, in.i, in.j);
    const char *now = element(c, x->after, at);
    if (!mine) {
        if (memcmp(now, element(c, c->image, at), gpb_type_bytes(c->type))) found(&x->outside, at);
    } else if (x->g->beta == 0 && x->p->of.fill != GPB_FILL_special)
        for (int part = 0; part < parts_of(x->p); part++)
            if (isnan(gpb_reference_value(x->g, now, part))) found(&x->unwritten, at);
}

static bool is_whole(answer *x)
{
    const operand *c = &x->p->x[GPB_C];
    const int64_t none = INT64_MAX;
    cores_each(c->offset + c->count, 20, look_around, x);
    if (x->unwritten < none) return fault(x->p, "not written", place_in_memory(x, x->unwritten), NAN, 0);
    if (x->outside == none) return true;
    const char *now = element(c, x->after, x->outside), *before = element(c, c->image, x->outside);
    return fault(x->p, "outside C", place_in_memory(x, x->outside), gpb_reference_value(x->g, now, 0),
                 gpb_reference_value(x->g, before, 0));
}

static bool is_untouched(const placed *p, enum gpb_operand x)
{
    const operand *o = &p->x[x];
    void *now = allocated(bytes_of(o), 1);
    operand_get(o, now);
    const bool same = !memcmp(now, o->image, bytes_of(o));
    free(now);
    return same || fault(p, x == GPB_A ? "A was written" : "B was written", (place_in_c){ 0, 0, 0 }, 0, 0);
}

/* Where an entry is in C. */
static int64_t element_of(const answer *x, int64_t entry)
{
    const place_in_c in = place_of(x->g, x->p->entry[entry]);
    return in.i + in.j * x->g->x[GPB_C].ld + in.l * x->p->stride[GPB_C];
}

static bool is_part_right(const answer *x, int64_t entry, int part)
{
    const operand *c = &x->p->x[GPB_C];
    const int64_t at = element_of(x, entry);
    const char *before = element(c, c->image, at), *after = element(c, x->after, at);
    return gpb_reference_surely(&x->quick, x->p->sums[entry], before, after, part)
        || is_right(x->p, x->g, x->math, x->p->sums[entry], before, after, part);
}

static void look_at(void *of, int64_t entry)
{
    answer *x = of;
    for (int part = 0; part < parts_of(x->p); part++)
        if (!is_part_right(x, entry, part)) found(&x->wrong, entry);
}

static bool are_entries_right(answer *x)
{
    const operand *c = &x->p->x[GPB_C];
    cores_each(x->p->entries, 120 * parts_of(x->p), look_at, x);
    const int64_t entry = x->wrong;
    if (entry == INT64_MAX) return true;
    const int part = is_part_right(x, entry, 0);
    const int64_t at = element_of(x, entry);
    return fault(x->p, part ? "imaginary part of C" : "C", place_of(x->g, x->p->entry[entry]),
                 gpb_reference_value(x->g, element(c, x->after, at), part),
                 gpb_reference_scaled(x->g, x->p->sums[entry], element(c, c->image, at), part).value);
}

bool placed_check(const placed *p, gpb_scalar alpha, gpb_scalar beta, enum gpb_math math)
{
    const operand *c = &p->x[GPB_C];
    char *after = allocated(bytes_of(c), 1);
    operand_get(c, after);
    const gpb_call g = canonical(p, alpha, beta);
    answer x = { p, &g, math, after, gpb_reference_quick_of(math, &g), INT64_MAX, INT64_MAX, INT64_MAX };
    if (p->of.fill == GPB_FILL_integer) x.quick.can = false;               /* these have to be exact */
    const bool right = is_whole(&x) && is_untouched(p, GPB_A) && is_untouched(p, GPB_B)
        && are_entries_right(&x);
    if (!right)
        fprintf(stderr, "  alpha %g %+g i beta %g %+g i\n", __real__ g.alpha, __imag__ g.alpha,
                __real__ g.beta, __imag__ g.beta);
    free(after);
    return right;
}

bool placed_try(placed *p, gpb_scalar alpha, gpb_scalar beta, enum gpb_math math)
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

bool type_runs(enum gpb_type type)
{
    static const struct { enum gpb_type type; const char *image; } kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { GPB_TYPE_##p, #image },
#include "kernels/gemm.def"
#undef KERNEL
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].type == type && kernel_runs(kernels[i].image)) return true;
    return false;
}

void set_option(const char *name, const char *value)
{
    if (!gpublas_set_option(name, value)) return;
    fprintf(stderr, "gpublas_set_option(\"%s\", \"%s\") failed\n", name, value ? value : "(default)");
    exit(1);
}
