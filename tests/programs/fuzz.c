/* SPDX-License-Identifier: MIT */
/* Random SGEMMs through every kind of door, each judged against FP64 by the bound that every kernel keeps: sizes, transpositions, leading
   dimensions, strides, alignment, scalars, data (NaN, infinities, subnormals, wide ranges), A = B, batches, triangles, illegal arguments.
   Operands end at a forbidden page or at canaries. Call I of a seed depends on both alone. Linked with -lgpublas; on the software libcuda
   and on a real GPU. Usage: fuzz SEED COUNT [FIRST [aloud]]. Exits with 1 if one was wrong, each printed with the command that repeats
   it, or if the heap grew by more than a MiB; with 77 if GPUBLAS_OFFLOAD is always and none was on a GPU. */
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
#include "tests/reference.h"

enum { CANARIES = 16, BYTES = 8 << 20 };

/* ---- drawing a call */

static uint64_t state;

static uint64_t draw(uint64_t below) { return gpb_reference_draw(&state, below); }

static int64_t draw_size(void)
{
    static const int edges[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 127, 128, 129, 200, 255, 257 };
    const uint64_t kind = draw(1000);
    return kind < 900 ? (int64_t)draw(10) : kind < 990 ? edges[draw(17)] : edges[draw(sizeof edges / sizeof *edges)];
}

static double draw_scalar(void)
{
    static const float some[] = { 1, 0, -1, 0.5f, 2, -0.0f, 1, 0.75f, -3.25f, 0x1p-20f, 0x1p20f, 1, 0, NAN, INFINITY, 0x1p-60f };
    return (double)some[draw(sizeof some / sizeof *some - (draw(8) ? 3 : 0))];
}

/* An infinite alpha times a sum is not the sum of infinite products. */
static double finite_or_nan(double x) { return isinf(x) ? -1 : x; }

enum data { INTEGERS, UNIFORM, WIDE, SPECIAL, DATA };

static float draw_float(enum data data)
{
    /* Nothing that overflows on its way: where that ends, in an infinity or in NaN, hangs on the order of the sum; and no subnormal times a
       large one, where it counts whether alpha comes first. */
    static const float special[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, 0x1p-149f, -0x1p-130f, 1.5f };
    const float x = (float)((double)draw(1 << 24) / (1 << 23) - 1);
    if (data == INTEGERS) return (float)((int)draw(9) - 4);
    if (data == SPECIAL && draw(16) == 0) return special[draw(8)];
    return data == WIDE ? ldexpf(x, (int)draw(60) - 30) : x;
}

/* Memory between two forbidden pages. */
static char *arena(void)
{
    char *map = mmap(NULL, BYTES + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + 4096, BYTES, PROT_READ | PROT_WRITE)) abort();
    return map + 4096;
}

/* So many elements, up to the forbidden page or some elements before it; padding and what lies around are NaN of an odd payload. */
static float *place(char *where, int64_t count, int64_t *behind)
{
    static const uint32_t odd = 0x7fa5a5a5;
    *behind = draw(2) ? 0 : 1 + (int64_t)draw(7);
    float *at = (float *)(void *)(where + BYTES) - *behind - count;
    for (float *x = at - CANARIES; x < at + count + *behind; x++) memcpy(x, &odd, sizeof odd);
    return at;
}

static int64_t span(int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t stride)
{
    return rows && cols && batch ? (batch - 1) * stride + (cols - 1) * ld + rows : 0;
}

static void fill(float *at, const int64_t size[2], int64_t ld, const int64_t members[2], enum data data)
{
    for (int64_t l = 0; l < members[0]; l++)
        for (int64_t j = 0; j < size[1]; j++)
            for (int64_t i = 0; i < size[0]; i++) at[l * members[1] + j * ld + i] = draw_float(data);
}

typedef struct problem {
    gpb_call call;
    const gpb_test_door *door;
    int illegal;                 /* 0, or the number that xerbla_ is to hear */
    int64_t count_c, behind_c;
} problem;

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

static problem make(uint64_t seed, uint64_t index)
{
    state = seed * 0x2545f4914f6cdd1d + index * 0x9e3779b97f4a7c15;
    problem p = { .door = &gpb_test_doors[draw(GPB_TEST_DOORS)] };
    gpb_call *g = &p.call;
    *g = (gpb_call){ .symbol = p.door->name, .type = GPB_TYPE_s, .x[GPB_A].trans = "NTC"[draw(3)], .x[GPB_B].trans = "NTC"[draw(3)], .x[GPB_C].uplo = 'G',
        .m = draw_size(),
                     .n = draw_size(), .k = draw_size(), .alpha = finite_or_nan(draw_scalar()), .beta = draw_scalar(), .batch = 1 };
    if (p.door->triangle) g->x[GPB_C].uplo = draw(2) ? 'U' : 'L', g->m = g->n;
    if (p.door->batch) g->batch = (int64_t)draw(5);
    const enum data data = draw(3) ? UNIFORM : (enum data)draw(DATA);
    const int64_t size_a[2] = { gpb_call_rows(g, GPB_A), gpb_call_cols(g, GPB_A) },
        size_b[2] = { gpb_call_rows(g, GPB_B), gpb_call_cols(g, GPB_B) },
        size_c[2] = { g->m, g->n };
    int64_t behind;
    g->x[GPB_A].ld = draw_ld(size_a[0]), g->x[GPB_B].ld = draw_ld(size_b[0]), g->x[GPB_C].ld = draw_ld(g->m);
    g->x[GPB_A].stride = draw(8) ? g->x[GPB_A].ld * size_a[1] + (int64_t)draw(9) : 0,
        g->x[GPB_B].stride = draw(8) ? g->x[GPB_B].ld * size_b[1] + (int64_t)draw(9) : 0;
    g->x[GPB_C].stride = g->x[GPB_C].ld * g->n + (int64_t)draw(9);
    float *a = place(arenas[0], span(size_a[0], size_a[1], g->x[GPB_A].ld, g->batch, g->x[GPB_A].stride),
                     &behind);
    float *b = place(arenas[1], span(size_b[0], size_b[1], g->x[GPB_B].ld, g->batch, g->x[GPB_B].stride),
                     &behind);
    p.count_c = span(g->m, g->n, g->x[GPB_C].ld, g->batch, g->x[GPB_C].stride);
    g->x[GPB_C].base = place(arenas[2], p.count_c, &p.behind_c);
    fill(a, size_a, g->x[GPB_A].ld, (int64_t[]){ g->batch, g->x[GPB_A].stride }, data),
        fill(b, size_b, g->x[GPB_B].ld, (int64_t[]){ g->batch, g->x[GPB_B].stride },
        data);
    if (g->beta != 0) fill(gpb_call_member(g, GPB_C, 0), size_c, g->x[GPB_C].ld,
                           (int64_t[]){ g->batch, g->x[GPB_C].stride }, data);
    g->x[GPB_A].base = a, g->x[GPB_B].base = b;
    if (draw(12) == 0 && size_a[0] == size_b[0] && size_a[1] == size_b[1])
        g->x[GPB_B].base = g->x[GPB_A].base, g->x[GPB_B].ld = g->x[GPB_A].ld,
            g->x[GPB_B].stride = g->x[GPB_A].stride;
    if ((g->alpha == 0 || g->k == 0) && draw(2)) g->x[GPB_A].base = g->x[GPB_B].base = NULL;
    if (p.door->reports && draw(16) == 0) p.illegal = spoil(g);
    return p;
}

/* ---- judging it */

static int reported;
__attribute__((visibility("default"))) void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    reported = *info;
}

/* With some kernels and options in turn: MATH tf32 is not asked for, so all keep FP32's bound. */
static const char *choose_options(void)
{
    static const char *const kernels[] = {
#define KERNEL(step, name, image, math, ...) GPB_MATH_##math == GPB_MATH_TF32 ? "" : #name,
#include "kernels/gemm.def"
#undef KERNEL
    };
    const char *kernel = draw(2) ? "" : kernels[draw(sizeof kernels / sizeof *kernels)];
    gpublas_set_option("KERNEL", kernel);
    gpublas_set_option("SPLITS", draw(8) ? "0" : draw(2) ? "2" : "5");
    gpublas_set_option("MATH", draw(4) ? "fp32" : "ieee");
    return kernel;
}

/* The elements that are wrong, as far as the reference can tell one from its neighbours. */
static void explain(const gpb_call *g, const float *before)
{
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                const gpb_reference_element e = gpb_reference_at(g, before, i, j, l);
                const double found = (double)((float *)g->x[GPB_C].base)[i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride];
                if (!(fabs(found - e.value) <= gpb_reference_bound(GPB_MATH_FFMA, g, e)) && !(isnan(found) && isnan(e.value))
                    && found != e.value)
                    printf("  C(%d,%d) of %d is %g, not %g; |alpha| |A| |B| %g, |beta C| %g, C was %g\n", (int)i, (int)j, (int)l, found,
                        e.value, e.product,
                           e.old, g->beta != 0 ? (double)before[i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride] : 0);
            }
}

static bool one(uint64_t seed, uint64_t index, bool aloud)
{
    static float *before;
    problem p = make(seed, index);
    const char *kernel = choose_options();
    const size_t bytes = (size_t)(p.count_c + p.behind_c) * sizeof(float);
    if (!before && !(before = malloc(BYTES))) abort();
    memcpy(before, (float *)p.call.x[GPB_C].base - CANARIES, bytes + CANARIES * sizeof(float));
    reported = 0;
    p.door->call(&p.call);
    double worst = memcmp(before, (float *)p.call.x[GPB_C].base - CANARIES,
                          CANARIES * sizeof(float)) ? INFINITY : 0;
    if (p.illegal) {
        if (reported != p.illegal || memcmp(before + CANARIES, p.call.x[GPB_C].base, bytes)) worst = INFINITY;
    } else if (worst == 0) {
        worst = reported ? INFINITY : gpb_reference_check(GPB_MATH_FFMA, &p.call, before + CANARIES, bytes);
    }
    const bool right = worst <= 1;
    const gpb_call *g = &p.call;
    if (!right || aloud)
        printf("%s fuzz %llu 1 %llu: %s uplo=%c %c%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%g beta=%g "
               "batch=%lld%s kernel=%s illegal=%d "
               "reported=%d: %g of the bound\n", right ? "right" : "WRONG", (unsigned long long)seed, (unsigned long long)index,
                   p.door->name, g->x[GPB_C].uplo,
               g->x[GPB_A].trans, g->x[GPB_B].trans, (long long)g->m, (long long)g->n, (long long)g->k,
                   (long long)g->x[GPB_A].ld, (long long)g->x[GPB_B].ld,
                   (long long)g->x[GPB_C].ld, (double)g->alpha,
               (double)g->beta, (long long)g->batch,
                   g->x[GPB_A].base && g->x[GPB_A].base == g->x[GPB_B].base ? " A=B" : "", kernel, p.illegal,
                       reported, worst);
    if (!right && aloud && !p.illegal) explain(g, before + CANARIES);
    return right;
}

/* Bytes that this process holds. */
static size_t held(void)
{
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), first = argc > 3 ? strtoull(argv[3], NULL,
        10) : 0;
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
    printf("calls %llu, on the GPU %llu, wrong %llu, mended by GPUBLAS_VERIFY %llu, bytes grown since a quarter of them %lld\n",
        (unsigned long long)count,
           (unsigned long long)stats.gpu_calls, (unsigned long long)wrong, (unsigned long long)stats.wrong_calls,
               (long long)now - (long long)warm);
    char when[16];
    gpublas_get_option("OFFLOAD", when, sizeof when);
    if (strcmp(when, "always") == 0 && stats.gpu_calls == 0) return 77;
    return wrong > 0 || (warm && now > warm + (1 << 20));
}
