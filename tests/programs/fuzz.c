/* SPDX-License-Identifier: MIT */
/* Random products through every kind of door, each judged by the reference and by the bound that every kernel
   keeps. Drawn are types, sizes, transpositions, leading dimensions, strides, alignment, scalars, data (NaN,
   infinities, subnormals, wide ranges), A = B, batches, triangles and illegal arguments. Operands end at a
   forbidden page or at poison. Call I of a seed depends on both alone. Linked with -lgpublas. It runs on the
   software libcuda and on a real GPU.
   Usage: fuzz SEED COUNT [FIRST [aloud]]. Exits with 1 if one was wrong, each printed with the command that
   repeats it, or if the heap grew by more than a MiB. Exits with 77 if GPUBLAS_OFFLOAD is always and no call
   was on a GPU. */
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/gpublas.h"
#include "tests/doors.h"
#include "tests/problem.h"

enum { CANARIES = 16, BEHIND = 7, BYTES = 16 << 20 };

/* ---- drawing a call */

static uint64_t state;

static uint64_t draw(uint64_t below) { return gpb_reference_draw(&state, below); }

static int64_t draw_size(void)
{
    static const int edges[] = { 0,  1,  2,  3,  4,  7,  8,   15,  16,  17,  31, 32,
                                 33, 63, 64, 65, 95, 127, 128, 129, 200, 255, 257 };
    const uint64_t kind = draw(1000);
    if (kind < 900) return (int64_t)draw(10);
    return edges[draw(kind < 990 ? 17 : sizeof edges / sizeof *edges)];
}

static double draw_real(void)
{
    static const float some[] = { 1,      0,        -1,      0.5f, 2, -0.0f, 1,        0.75f,
                                  -3.25f, 0x1p-20f, 0x1p20f, 1,    0, NAN,   INFINITY, 0x1p-60f };
    return (double)some[draw(sizeof some / sizeof *some - (draw(8) ? 3 : 0))];
}

/* Half of the complex ones are real, because code may have a case of its own for 0 and 1. */
static gpb_scalar draw_scalar(enum gpb_type type)
{
    const double real = draw_real();
    return __builtin_complex(real, gpb_type_is_complex(type) && draw(2) ? draw_real() : 0);
}

/* An infinite alpha times a sum is not the sum of infinite products. */
static double finite_or_nan(double x) { return isinf(x) ? -1 : x; }
static gpb_scalar finite_parts(gpb_scalar x)
{
    return __builtin_complex(finite_or_nan(__real__ x), finite_or_nan(__imag__ x));
}

/* Memory between two forbidden pages. */
static char *arena(void)
{
    char *map = mmap(NULL, BYTES + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + 4096, BYTES, PROT_READ | PROT_WRITE)) abort();
    return map + 4096;
}

static size_t bytes_of(enum gpb_type type, int64_t elements)
{
    return (size_t)elements * gpb_type_bytes(type);
}

/* So many elements, up to the forbidden page or some real numbers before it. Padding and what lies around are
   poison. behind: bytes. */
static char *place(enum gpb_type type, char *where, int64_t count, size_t *behind)
{
    *behind = gpb_type_real_bytes(type) * (draw(2) ? 0 : 1 + (size_t)draw(7));
    char *at = where + BYTES - *behind - bytes_of(type, count);
    gpb_poison(type, where + BYTES - bytes_of(type, count + BEHIND), count + BEHIND);
    gpb_poison(type, at - bytes_of(type, CANARIES), CANARIES + count);
    return at;
}

static int64_t span(int64_t rows, int64_t cols, const gpb_matrix *x, int64_t batch)
{
    return rows && cols && batch ? (batch - 1) * x->stride + (cols - 1) * x->ld + rows : 0;
}

static void fill(const gpb_call *g, const gpb_test_row *row, enum gpb_operand x, enum gpb_fill data)
{
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < gpb_call_cols(g, x); j++) {
            char *member = gpb_call_member(g, x, l);
            row->fill(data, g->type, member + bytes_of(g->type, j * g->x[x].ld), gpb_call_rows(g, x), &state);
        }
    if (x != GPB_C) gpb_test_poison_mirror(g, x);
}

typedef struct task {
    gpb_call call;
    const gpb_test_door *door;
    int illegal;                 /* 0, or the number that xerbla_ is to hear */
    int64_t count_c;
    size_t behind_c;             /* bytes that are poison, up to the forbidden page */
} task;

static char *arenas[3];

static int64_t draw_ld(int64_t least)
{
    static const int more[] = { 0, 0, 0, 1, 2, 5, 16, 61 };
    return (least > 0 ? least : 1) + more[draw(8)];
}

/* An argument of its own kind made illegal; what netlib says of it. */
static int spoil(gpb_call *g)
{
    switch (draw(6)) {
    case 0: g->x[GPB_A].trans = 'X'; return 1;
    case 1: g->x[GPB_B].trans = '#'; return 2;
    case 2: g->m = -1 - (int64_t)draw(3); return 3;
    case 3: g->n = -1; return 4;
    case 4: g->k = -1; return 5;
    default: g->x[GPB_C].ld = g->m - 1; return 13;
    }
}

static gpb_call draw_sizes(enum gpb_type type, const gpb_test_door *door)
{
    gpb_call g = { .symbol = door->name, .type = type, .batch = 1 };
    g.x[GPB_A].trans = "NTC"[draw(3)];
    g.x[GPB_B].trans = "NTC"[draw(3)];
    g.x[GPB_C].trans = 'N';
    g.x[GPB_C].uplo = 'G';
    g.m = draw_size();
    g.n = draw_size();
    g.k = draw_size();
    g.alpha = finite_parts(draw_scalar(type));
    g.beta = draw_scalar(type);
    if (gpb_test_has_triangle(door->routine)) {
        g.x[GPB_C].uplo = draw(2) ? 'U' : 'L';
        g.m = g.n;
    }
    if (gpb_test_sided(door->routine)) gpb_test_put_side(door->routine, &g, "LR"[draw(2)], "UL"[draw(2)]);
    if (gpb_test_row_of(door->routine)->members != GPB_MEMBERS_ONE) g.batch = (int64_t)draw(5);
    gpb_test_settle(door->routine, &g);
    return g;
}

/* Where operands lie, and what they hold. C is the last, so its count is what is left in the task. */
static void draw_operands(task *t)
{
    gpb_call *g = &t->call;
    static const enum gpb_fill fills[] = { GPB_FILL_integer, GPB_FILL_uniform, GPB_FILL_wider,
                                           GPB_FILL_hostile };
    const enum gpb_fill data = draw(3) ? GPB_FILL_uniform : fills[draw(sizeof fills / sizeof *fills)];
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) {
        const int64_t rows = gpb_call_rows(g, x), cols = gpb_call_cols(g, x);
        g->x[x].ld = draw_ld(rows);
        g->x[x].stride = x == GPB_C || draw(8) ? g->x[x].ld * cols + (int64_t)draw(9) : 0;
        t->count_c = span(rows, cols, &g->x[x], g->batch);
        g->x[x].base = place(g->type, arenas[x], t->count_c, &t->behind_c);
        /* netlib multiplies C by beta = 1, or does not: of complex infinities that makes NaN, or not. */
        const bool either = x == GPB_C && g->beta == 1 && gpb_type_is_complex(g->type);
        if (x != GPB_C || g->beta != 0)
            fill(g, gpb_test_row_of(t->door->routine), x, either ? GPB_FILL_uniform : data);
    }
}

/* A and B the same matrix, or not there where they are not read. */
static void draw_odd_ones(const gpb_test_door *door, gpb_call *g)
{
    gpb_test_settle(door->routine, g);
    const bool alike = gpb_call_rows(g, GPB_A) == gpb_call_rows(g, GPB_B)
                       && gpb_call_cols(g, GPB_A) == gpb_call_cols(g, GPB_B);
    if (draw(12) == 0 && alike) {
        g->x[GPB_B].base = g->x[GPB_A].base;
        g->x[GPB_B].ld = g->x[GPB_A].ld;
        g->x[GPB_B].stride = g->x[GPB_A].stride;
    }
    if ((g->alpha == 0 || g->k == 0) && draw(2)) g->x[GPB_A].base = g->x[GPB_B].base = NULL;
}

static task make(uint64_t seed, uint64_t index)
{
    state = seed * 0x2545f4914f6cdd1d + index * 0x9e3779b97f4a7c15;
    const enum gpb_type type = draw(2) ? GPB_TYPE_s : (enum gpb_type)draw(GPB_TYPES);
    task t = { .door = &gpb_test_doors[type][draw((uint64_t)gpb_test_doors_of(type))] };
    t.call = draw_sizes(type, t.door);
    draw_operands(&t);
    draw_odd_ones(t.door, &t.call);
    if (t.door->reports && draw(16) == 0) t.illegal = spoil(&t.call);
    return t;
}

/* ---- judging it */

static int reported;
__attribute__((visibility("default"))) void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    reported = *info;
}

/* With some kernels of the type and options in turn: MATH tf32 is not asked for, so all keep the bound. */
static const char *choose_options(enum gpb_type type)
{
    static const struct { enum gpb_type type; const char *name; } kernels[] = {
#define KERNEL(step, p, name, image, math, ...) \
    { GPB_TYPE_##p, GPB_MATH_##math == GPB_MATH_TF32 ? "" : #name },
#include "kernels/gemm.def"
#undef KERNEL
    };
    const char *kernel = "";
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)      /* each with the same probability */
        if (kernels[i].type == type && draw(++seen) == 0) kernel = kernels[i].name;
    if (draw(2)) kernel = "";
    gpublas_set_option("KERNEL", kernel);
    gpublas_set_option("SPLITS", draw(8) ? "0" : draw(2) ? "2" : "5");
    gpublas_set_option("MATH", draw(4) ? "fp32" : "ieee");
    return kernel;
}

/* The elements that are wrong, as far as the reference can tell one from its neighbours. */
static void explain(const gpb_call *g, const char *before)
{
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                const size_t at = bytes_of(g->type, i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride);
                const char *found = (const char *)g->x[GPB_C].base + at;
                for (int part = 0; part <= gpb_type_is_complex(g->type); part++) {
                    const gpb_reference_element e = gpb_reference_part(g, before, i, j, l, part);
                    if (gpb_reference_error(GPB_MATH_FMA, g, e, found, part) <= 1) continue;
                    printf("  C(%d,%d)%s of %d is %g, not %g; |alpha| |A| |B| %g, |beta C| %g, C was %g\n",
                           (int)i, (int)j, part ? ".im" : "", (int)l, gpb_reference_value(g, found, part),
                           e.value, e.product, e.old,
                           g->beta != 0 ? gpb_reference_value(g, before + at, part) : 0);
                }
            }
}

static void describe(const task *t, const char *kernel, double worst)
{
    const gpb_call *g = &t->call;
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B], *c = &g->x[GPB_C];
    printf("%s uplo=%c %c%c%c%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld ", t->door->name, c->uplo,
           a->trans, b->trans, a->uplo ? a->uplo : '-', b->uplo ? b->uplo : '-', (long long)g->m,
           (long long)g->n, (long long)g->k, (long long)a->ld, (long long)b->ld, (long long)c->ld);
    printf("alpha=%g%+gi beta=%g%+gi batch=%lld%s kernel=%s illegal=%d reported=%d: %g of the bound\n",
           __real__ g->alpha, __imag__ g->alpha, __real__ g->beta, __imag__ g->beta, (long long)g->batch,
           a->base && a->base == b->base ? " A=B" : "", kernel, t->illegal, reported, worst);
}

/* In units of the bound: what stands before C and behind it has to be as it was, and C right. */
static double judge(const task *t, const char *before, size_t bytes)
{
    const char *c = t->call.x[GPB_C].base;
    const size_t canaries = bytes_of(t->call.type, CANARIES);
    if (memcmp(before, c - canaries, canaries)) return INFINITY;
    if (reported != t->illegal) return INFINITY;
    if (t->illegal) return memcmp(before + canaries, c, bytes) ? INFINITY : 0;
    return gpb_test_row_of(t->door->routine)->check(GPB_MATH_FMA, &t->call, before + canaries, bytes);
}

static bool one(uint64_t seed, uint64_t index, bool aloud)
{
    static char *before;
    task t = make(seed, index);
    const char *kernel = choose_options(t.call.type);
    const size_t bytes = bytes_of(t.call.type, t.count_c) + t.behind_c,
                 canaries = bytes_of(t.call.type, CANARIES);
    if (!before && !(before = malloc(BYTES))) abort();
    memcpy(before, (const char *)t.call.x[GPB_C].base - canaries, bytes + canaries);
    reported = 0;
    t.door->call(&t.call);
    const double worst = judge(&t, before, bytes);
    const bool right = worst <= 1;
    if (!right || aloud) {
        printf("%s fuzz %llu 1 %llu: ", right ? "right" : "WRONG", (unsigned long long)seed,
               (unsigned long long)index);
        describe(&t, kernel, worst);
    }
    if (!right && aloud && !t.illegal) explain(&t.call, before + canaries);
    return right;
}

/* Bytes that this process holds. */
static size_t held(void)
{
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

static void summary(uint64_t count, uint64_t wrong, int64_t grown, const gpublas_stats_t *stats)
{
    printf("calls %llu, on the GPU %llu, wrong %llu, mended by GPUBLAS_VERIFY %llu, bytes grown since a "
           "quarter of them "
           "%lld\n",
           (unsigned long long)count, (unsigned long long)stats->gpu_calls, (unsigned long long)wrong,
           (unsigned long long)stats->wrong_calls, (long long)grown);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    const uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t wrong = 0;
    size_t warm = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 3; i++) arenas[i] = arena();
    for (uint64_t i = first; i < first + count && wrong < 20; i++) {
        wrong += !one(seed, i, argc > 4);
        if (i - first == count / 4) warm = held();
    }
    gpublas_stats_t stats;
    gpublas_stats(&stats, sizeof stats);
    const size_t now = held();
    summary(count, wrong, (int64_t)now - (int64_t)warm, &stats);
    char when[16];
    gpublas_get_option("OFFLOAD", when, sizeof when);
    if (strcmp(when, "always") == 0 && stats.gpu_calls == 0) return 77;
    return wrong > 0 || (warm && now > warm + (1 << 20));
}
