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
#include "tests/reference.h"

enum { ROW = 101, COLUMN = 102, CANARIES = 16, BYTES = 8 << 20 };

/* ---- the doors, by the types of tests/programs: CBLAS's enumerations as int */

#define F77(name, INT)                                                                                                              \
    void name(const char *, const char *, const INT *, const INT *, const INT *, const float *, const float *, const INT *, const float *, \
              const INT *, const float *, float *, const INT *);
#define CBLAS(name, INT) void name(int, int, int, INT, INT, INT, float, const float *, INT, const float *, INT, float, float *, INT);
F77(sgemm_, int) F77(sgemm_64_, int64_t) CBLAS(cblas_sgemm, int) CBLAS(cblas_sgemm64_, int64_t)
void sgemmtr_(const char *, const char *, const char *, const int *, const int *, const float *, const float *, const int *,
    const float *, const int *,
              const float *, float *, const int *);
void cblas_sgemmtr(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void cblas_sgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const float *, const float **, const int *,
                       const float **, const int *, const float *, float **, const int *, int, const int *);
void sgemm_batch_strided_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
    const int *,
                          const float *, const int *, const int *, const float *, float *, const int *, const int *, const int *);
void cblas_sgemm_batch_strided(int, int, int, int, int, int, float, const float *, int, int, const float *, int, int, float, float *,
    int, int, int);

static int trans(char letter) { return letter == 'N' ? 111 : letter == 'T' ? 112 : 113; }

static void through_f77(const gpb_call *g)
{
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_(&g->transa, &g->transb, &m, &n, &k, &alpha, g->a, &lda, g->b, &ldb, &beta, g->c, &ldc);
}

static void through_f77_64(const gpb_call *g)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_64_(&g->transa, &g->transb, &g->m, &g->n, &g->k, &alpha, g->a, &g->lda, g->b, &g->ldb, &beta, g->c, &g->ldc);
}

static void through_columns(const gpb_call *g)
{
    cblas_sgemm(COLUMN, trans(g->transa), trans(g->transb), (int)g->m, (int)g->n, (int)g->k, (float)g->alpha, g->a, (int)g->lda, g->b,
        (int)g->ldb,
                (float)g->beta, g->c, (int)g->ldc);
}

/* Row-major with the operands exchanged is the same product. */
static void through_rows(const gpb_call *g)
{
    cblas_sgemm(ROW, trans(g->transb), trans(g->transa), (int)g->n, (int)g->m, (int)g->k, (float)g->alpha, g->b, (int)g->ldb, g->a,
        (int)g->lda,
                (float)g->beta, g->c, (int)g->ldc);
}

static void through_rows_64(const gpb_call *g)
{
    cblas_sgemm64_(ROW, trans(g->transb), trans(g->transa), g->n, g->m, g->k, (float)g->alpha, g->b, g->ldb, g->a, g->lda,
        (float)g->beta, g->c, g->ldc);
}

static void through_triangle(const gpb_call *g)
{
    const int n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemmtr_(&g->uplo, &g->transa, &g->transb, &n, &k, &alpha, g->a, &lda, g->b, &ldb, &beta, g->c, &ldc);
}

static void through_triangle_rows(const gpb_call *g)
{
    cblas_sgemmtr(ROW, g->uplo == 'U' ? 122 : 121, trans(g->transb), trans(g->transa), (int)g->n, (int)g->k, (float)g->alpha, g->b,
        (int)g->ldb, g->a,
                  (int)g->lda, (float)g->beta, g->c, (int)g->ldc);
}

static void through_strided(const gpb_call *g)
{
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc, count = (int)g->batch;
    const int sa = (int)g->stride_a, sb = (int)g->stride_b, sc = (int)g->stride_c;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_batch_strided_(&g->transa, &g->transb, &m, &n, &k, &alpha, g->a, &lda, &sa, g->b, &ldb, &sb, &beta, g->c, &ldc, &sc, &count);
}

static void through_strided_rows(const gpb_call *g)
{
    cblas_sgemm_batch_strided(ROW, trans(g->transb), trans(g->transa), (int)g->n, (int)g->m, (int)g->k, (float)g->alpha, g->b, (int)g->ldb,
                              (int)g->stride_b, g->a, (int)g->lda, (int)g->stride_a, (float)g->beta, g->c, (int)g->ldc, (int)g->stride_c,
                                  (int)g->batch);
}

/* The members in two groups of the same shape, or in one. */
static void through_groups(const gpb_call *g)
{
    enum { MOST = 8 };
    const float *a[MOST], *b[MOST];
    float *c[MOST];
    const int first = (int)g->batch / 2, sizes[2] = { first ? first : (int)g->batch, (int)g->batch - first };
    int ta[2], tb[2], m[2], n[2], k[2], lda[2], ldb[2], ldc[2];
    float alpha[2], beta[2];
    for (int i = 0; i < 2; i++) {
        ta[i] = trans(g->transa), tb[i] = trans(g->transb), m[i] = (int)g->m, n[i] = (int)g->n, k[i] = (int)g->k;
        lda[i] = (int)g->lda, ldb[i] = (int)g->ldb, ldc[i] = (int)g->ldc, alpha[i] = (float)g->alpha, beta[i] = (float)g->beta;
    }
    for (int64_t l = 0; l < g->batch; l++) {
        a[l] = (const float *)g->a + l * g->stride_a, b[l] = (const float *)g->b + l * g->stride_b;
        c[l] = (float *)g->c + l * g->stride_c;
    }
    cblas_sgemm_batch(COLUMN, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, first ? 2 : 1, sizes);
}

static const struct door { const char *name; void (*call)(const gpb_call *); bool batch, triangle; } doors[] = {
    { "sgemm_", through_f77, false, false },           { "sgemm_64_", through_f77_64, false, false },
    { "cblas_sgemm, columns", through_columns, false, false }, { "cblas_sgemm, rows", through_rows, false, false },
    { "cblas_sgemm64_, rows", through_rows_64, false, false }, { "sgemmtr_", through_triangle, false, true },
    { "cblas_sgemmtr, rows", through_triangle_rows, false, true }, { "sgemm_batch_strided_", through_strided, true, false },
    { "cblas_sgemm_batch_strided, rows", through_strided_rows, true, false }, { "cblas_sgemm_batch", through_groups, true, false } };
enum { DOORS = sizeof doors / sizeof *doors };

/* ---- drawing a call */

static uint64_t state;

static uint64_t draw(uint64_t below)      /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

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
    const struct door *door;
    int illegal;                 /* 0, or the number that xerbla_ is to hear (through_f77) */
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
    case 0: g->transa = 'X'; return 1;
    case 1: g->transb = '#'; return 2;
    case 2: g->m = -1 - (int64_t)draw(3); return 3;
    case 3: g->n = -1; return 4;
    case 4: g->k = -1; return 5;
    default: g->ldc = g->m - 1; return 13;
    }
}

static problem make(uint64_t seed, uint64_t index)
{
    state = seed * 0x2545f4914f6cdd1d + index * 0x9e3779b97f4a7c15;
    problem p = { .door = &doors[draw(DOORS)] };
    gpb_call *g = &p.call;
    *g = (gpb_call){ .symbol = p.door->name, .precision = 's', .transa = "NTC"[draw(3)], .transb = "NTC"[draw(3)], .uplo = 'G',
        .m = draw_size(),
                     .n = draw_size(), .k = draw_size(), .alpha = finite_or_nan(draw_scalar()), .beta = draw_scalar(), .batch = 1 };
    if (p.door->triangle) g->uplo = draw(2) ? 'U' : 'L', g->m = g->n;
    if (p.door->batch) g->batch = (int64_t)draw(5);
    const enum data data = draw(3) ? UNIFORM : (enum data)draw(DATA);
    const int64_t size_a[2] = { gpb_call_rows_a(g), gpb_call_cols_a(g) }, size_b[2] = { gpb_call_rows_b(g), gpb_call_cols_b(g) },
        size_c[2] = { g->m, g->n };
    int64_t behind;
    g->lda = draw_ld(size_a[0]), g->ldb = draw_ld(size_b[0]), g->ldc = draw_ld(g->m);
    g->stride_a = draw(8) ? g->lda * size_a[1] + (int64_t)draw(9) : 0, g->stride_b = draw(8) ? g->ldb * size_b[1] + (int64_t)draw(9) : 0;
    g->stride_c = g->ldc * g->n + (int64_t)draw(9);
    float *a = place(arenas[0], span(size_a[0], size_a[1], g->lda, g->batch, g->stride_a), &behind);
    float *b = place(arenas[1], span(size_b[0], size_b[1], g->ldb, g->batch, g->stride_b), &behind);
    p.count_c = span(g->m, g->n, g->ldc, g->batch, g->stride_c);
    g->c = place(arenas[2], p.count_c, &p.behind_c);
    fill(a, size_a, g->lda, (int64_t[]){ g->batch, g->stride_a }, data), fill(b, size_b, g->ldb, (int64_t[]){ g->batch, g->stride_b },
        data);
    if (g->beta != 0) fill(g->c, size_c, g->ldc, (int64_t[]){ g->batch, g->stride_c }, data);
    g->a = a, g->b = b;
    if (draw(12) == 0 && size_a[0] == size_b[0] && size_a[1] == size_b[1])
        g->b = g->a, g->ldb = g->lda, g->stride_b = g->stride_a;
    if ((g->alpha == 0 || g->k == 0) && draw(2)) g->a = g->b = NULL;
    if (p.door->call == through_f77 && draw(16) == 0) p.illegal = spoil(g);
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
                const double found = (double)((float *)g->c)[i + j * g->ldc + l * g->stride_c];
                if (!(fabs(found - e.value) <= gpb_reference_bound(GPB_MATH_FFMA, g, e)) && !(isnan(found) && isnan(e.value))
                    && found != e.value)
                    printf("  C(%d,%d) of %d is %g, not %g; |alpha| |A| |B| %g, |beta C| %g, C was %g\n", (int)i, (int)j, (int)l, found,
                        e.value, e.product,
                           e.old, g->beta != 0 ? (double)before[i + j * g->ldc + l * g->stride_c] : 0);
            }
}

static bool one(uint64_t seed, uint64_t index, bool aloud)
{
    static float *before;
    problem p = make(seed, index);
    const char *kernel = choose_options();
    const size_t bytes = (size_t)(p.count_c + p.behind_c) * sizeof(float);
    if (!before && !(before = malloc(BYTES))) abort();
    memcpy(before, (float *)p.call.c - CANARIES, bytes + CANARIES * sizeof(float));
    reported = 0;
    p.door->call(&p.call);
    double worst = memcmp(before, (float *)p.call.c - CANARIES, CANARIES * sizeof(float)) ? INFINITY : 0;
    if (p.illegal) {
        if (reported != p.illegal || memcmp(before + CANARIES, p.call.c, bytes)) worst = INFINITY;
    } else if (worst == 0) {
        worst = reported ? INFINITY : gpb_reference_check(GPB_MATH_FFMA, &p.call, before + CANARIES, bytes);
    }
    const bool right = worst <= 1;
    const gpb_call *g = &p.call;
    if (!right || aloud)
        printf("%s fuzz %llu 1 %llu: %s uplo=%c %c%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%g beta=%g "
               "batch=%lld%s kernel=%s illegal=%d "
               "reported=%d: %g of the bound\n", right ? "right" : "WRONG", (unsigned long long)seed, (unsigned long long)index,
                   p.door->name, g->uplo,
               g->transa, g->transb, (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->lda, (long long)g->ldb,
                   (long long)g->ldc, g->alpha,
               g->beta, (long long)g->batch, g->a && g->a == g->b ? " A=B" : "", kernel, p.illegal, reported, worst);
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
