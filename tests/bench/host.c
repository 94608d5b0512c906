/* SPDX-License-Identifier: MIT */
/* SGEMM on host memory; see host.h. */
#include "tests/bench/host.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/bench.h"

/* As they are, and as NumPy's and SciPy's wheels have them. Fortran last: row-major comes by C. */
static const struct { const char *name; bool wide, fortran; } spellings[] = {
    { "cblas_sgemm", false, false }, { "scipy_cblas_sgemm", false, false },
    { "scipy_cblas_sgemm64_", true, false },
    { "cblas_sgemm64_", true, false }, { "sgemm_", false, true }, { "sgemm_64_", true, true },
};
enum {
    SPELLINGS = sizeof spellings / sizeof *spellings, PATTERN = 16777213, ROW_MAJOR = 101,
    COLUMN_MAJOR = 102
};

typedef void narrow(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                    float *, int);
typedef void wide(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                  int64_t, float, float *, int64_t);
typedef void narrow_fortran(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                            const float *, const float *, const int32_t *, const float *, const int32_t *,
                            const float *, float *, const int32_t *, size_t, size_t);
typedef void wide_fortran(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,
                          const float *, const float *, const int64_t *, const float *, const int64_t *,
                          const float *, float *, const int64_t *, size_t, size_t);

static blas open_in(const char *path, int mode, const char *spelling)
{
    blas b = { .library = dlopen(path, mode) };
    if (!b.library) {
        fprintf(stderr, "bench: %s\n", dlerror());
        exit(77);
    }
    for (int i = 0; i < SPELLINGS && !b.call; i++) {
        if (spelling && strcmp(spelling, spellings[i].name)) continue;
        b.spelling = spellings[i].name;
        b.wide = spellings[i].wide;
        b.fortran = spellings[i].fortran;
        b.call = dlsym(b.library, b.spelling);
    }
    if (!b.call) {
        fprintf(stderr, "bench: %s: no %s\n", path, spelling ? spelling : "SGEMM by any name");
        exit(1);
    }
    return b;
}

blas blas_open(const char *path, const char *spelling) { return open_in(path, RTLD_NOW, spelling); }

blas blas_as_linked(const char *path)
{
    blas b = open_in(path, RTLD_NOW | RTLD_GLOBAL, NULL);
    b.call = bench_symbol(RTLD_DEFAULT, b.spelling);
    return b;
}

static int cblas_letter(char trans) { return trans == 'N' ? 111 : 112; }

static void by_fortran(const blas *by, const gpb_call *g)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    const int64_t ldc = g->x[GPB_C].ld;
    float *c = gpb_call_member(g, GPB_C, 0);
    if (by->wide) {
        ((wide_fortran *)by->call)(&a->trans, &b->trans, &g->m, &g->n, &g->k, &alpha, a->base, &a->ld,
                                   b->base, &b->ld, &beta, c, &ldc,
                                  1, 1);
        return;
    }
    const int32_t m = (int32_t)g->m, n = (int32_t)g->n, k = (int32_t)g->k, lda = (int32_t)a->ld,
        ldb = (int32_t)b->ld;
    const int32_t narrow_ldc = (int32_t)ldc;
    ((narrow_fortran *)by->call)(&a->trans, &b->trans, &m, &n, &k, &alpha, a->base, &lda, b->base, &ldb,
                                 &beta, c, &narrow_ldc, 1, 1);
}

static void by_c(const blas *by, int order, const gpb_call *g)
{
    const int ta = cblas_letter(g->x[GPB_A].trans), tb = cblas_letter(g->x[GPB_B].trans);
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    const int64_t ldc = g->x[GPB_C].ld;
    float *c = gpb_call_member(g, GPB_C, 0);
    if (by->wide)
        ((wide *)by->call)(order, ta, tb, g->m, g->n, g->k, alpha, a->base, a->ld, b->base, b->ld, beta, c,
                           ldc);
    else
        ((narrow *)by->call)(order, ta, tb, (int)g->m, (int)g->n, (int)g->k, alpha, a->base, (int)a->ld,
                             b->base, (int)b->ld, beta, c,
                            (int)ldc);
}

void blas_call(const blas *b, const gpb_call *g)
{
    if (b->fortran) {
        by_fortran(b, g);
    } else if (g->row_major) {
        gpb_call twin = *g;
        twin.x[GPB_A] = g->x[GPB_B];
        twin.x[GPB_B] = g->x[GPB_A];
        twin.m = g->n;
        twin.n = g->m;
        by_c(b, ROW_MAJOR, &twin);
    } else {
        by_c(b, COLUMN_MAJOR, g);
    }
}

gpb_call host_call(int64_t m, int64_t n, int64_t k, double beta)
{
    return (gpb_call){ .symbol = "sgemm_", .width = 32, .type = GPB_TYPE_s, .m = m, .n = n, .k = k,
                       .alpha = 1, .beta = beta, .batch = 1,
                       .x = { { .ld = m, .trans = 'N' }, { .ld = k, .trans = 'N' },
                              { .ld = m, .uplo = 'G' } } };
}

/* ---- memory ---- */

typedef struct share { float *at; size_t floats, first; pthread_t thread; } share;
static float *pattern;      /* its length is a prime: no column looks like its neighbour */

static void *write_share(void *of)
{
    share *s = of;
    for (size_t x = 0; x < s->floats;) {
        size_t from = (s->first + x) % PATTERN;
        size_t count = PATTERN - from < s->floats - x ? PATTERN - from : s->floats - x;
        memcpy(s->at + x, pattern + from, 4 * count);
        x += count;
    }
    return NULL;
}

/* By as many threads as the process may have cores, because a fresh page costs 1.85 us on one core and 0.18
   us on 16 (evidence/machine.md). */
static void write_all(slab *s)
{
    enum { MAX_SHARES = 64 };
    share shares[MAX_SHARES];
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    if (count > MAX_SHARES) count = MAX_SHARES;
    if (!pattern) {
        pattern = bench_memory((size_t)4 * PATTERN);
        gpb_reference_fill(pattern, PATTERN, 1);
    }
    for (int i = 0; i < count; i++) {
        size_t from = s->floats / (size_t)count * (size_t)i;
        size_t to = i == count - 1 ? s->floats : s->floats / (size_t)count * (size_t)(i + 1);
        shares[i] = (share){ s->at + from, to - from, from + 7919 * s->generation, 0 };
        if (pthread_create(&shares[i].thread, NULL, write_share, &shares[i])) must(-1, "pthread_create");
    }
    for (int i = 0; i < count; i++) pthread_join(shares[i].thread, NULL);
    s->used = 0;
    s->generation++;
}

memory memory_at(float *at, room r)
{
    memory m = { { at, r.in, 0, false, 0 }, { at + r.in, r.out, 0, false, 0 } };
    write_all(&m.in);
    write_all(&m.out);
    return m;
}

memory memory_make(room r, bool fresh)
{
    void *at = mmap(NULL, 4 * (r.in + r.out), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) must(-1, "mmap");
    memory m = memory_at(at, r);
    m.in.fresh = m.out.fresh = fresh;
    return m;
}

/* Neighbours begin at different places of their pages, as what malloc hands out does. */
static size_t rounded(int64_t floats) { return ((size_t)floats + 63) / 64 * 64 + 64; }
static size_t floats_a(const gpb_call *g) { return rounded(g->x[GPB_A].ld * gpb_call_cols(g, GPB_A)); }
static size_t floats_b(const gpb_call *g) { return rounded(g->x[GPB_B].ld * gpb_call_cols(g, GPB_B)); }
static size_t floats_c(const gpb_call *g) { return rounded(g->x[GPB_C].ld * g->n); }
room room_of(const gpb_call *g) { return (room){ floats_a(g) + floats_b(g), floats_c(g) }; }

static float *take(slab *s, size_t floats)
{
    if (floats > s->floats) must(-1, "room for operands");
    if (s->used + floats > s->floats) {
        if (s->fresh) write_all(s);
        s->used = 0;
    }
    float *taken = s->at + s->used;
    s->used += floats;
    return taken;
}

void memory_operands(memory *from, gpb_call *g, bool inside)
{
    float *a = take(&from->in, floats_a(g) + floats_b(g));
    float *b = a + floats_a(g);
    float *c = take(&from->out, floats_c(g));
    g->x[GPB_A].base = a + (inside ? (g->x[GPB_A].ld - gpb_call_rows(g, GPB_A)) / 2 : 0);
    g->x[GPB_B].base = b + (inside ? (g->x[GPB_B].ld - gpb_call_rows(g, GPB_B)) / 2 : 0);
    g->x[GPB_C].base = c + (inside ? (g->x[GPB_C].ld - g->m) / 2 : 0);
}

/* ---- the answer ---- */

void check_draw(check *c, const gpb_call *g, int count)
{
    c->count = count < CHECKED ? count : CHECKED;
    for (int x = 0; x < c->count; x++) {
        c->i[x] = x < 2 ? g->m - 1 : random() % g->m;
        c->j[x] = x == 0 || x == 2 ? g->n - 1 : random() % g->n;
        float *at = (float *)g->x[GPB_C].base + c->i[x] + c->j[x] * g->x[GPB_C].ld;
        c->old[x] = *at;
    }
    for (int x = 0; x < c->count && g->beta == 0; x++)
        gpb_poison(g->type, (float *)g->x[GPB_C].base + c->i[x] + c->j[x] * g->x[GPB_C].ld, 1);
}

double check_worst(const check *c, const gpb_call *g)
{
    double worst = 0;
    for (int x = 0; x < c->count; x++) {
        gpb_reference_element sums[2];
        gpb_reference_sums(g, c->i[x], c->j[x], 0, sums);
        const gpb_reference_element e = gpb_reference_scaled(g, sums, &c->old[x], 0);
        const float *got = (const float *)g->x[GPB_C].base + c->i[x] + c->j[x] * g->x[GPB_C].ld;
        if (isnan(*got)) return INFINITY;
        worst = fmax(worst, gpb_reference_error(GPB_MATH_FMA, g, e, got, 0));
    }
    return worst;
}

/* ---- what it could be ---- */

double host_flops(const gpb_call *g) { return gpb_test_flops(GPB_TEST_gemm, g); }

/* Panels of A and B go up by turns, and each pair that is there unlocks a tile of C. A alone needs a seconds
   and B alone b, with a >= b. After t seconds t^2 / 4ab of C is unlocked if t is at most 2b, and (t - b) / a
   after that. What is not unlocked at t is still to be computed or to come home, so no schedule needs less
   than t and the time for that, whatever t is. The largest such sum is the bound. Or k is cut into panels:
   all of A and B go up, then C comes home. The better of both counts. */
double host_ideal(const gpb_call *g, int cores)
{
    const double link = 50e9, rate = 200e12;
    const double bytes_a = gpb_test_bytes(GPB_TEST_gemm, g, GPB_A);
    const double bytes_b = gpb_test_bytes(GPB_TEST_gemm, g, GPB_B);
    const double bytes_c = gpb_test_bytes_written(GPB_TEST_gemm, g);
    const double in = gpb_test_bytes_read(GPB_TEST_gemm, g);
    const double t_in = in / link, t_out = bytes_c / link, t_c = host_flops(g) / rate, x = fmax(t_c, t_out);
    const double stretch = t_in / (bytes_a + bytes_b);       /* C's panels arrive with those of A and B */
    const double a = stretch * fmax(bytes_a, bytes_b), b = stretch * fmin(bytes_a, bytes_b);
    double wave = fmax(a + b, 2 * b + (1 - b / a) * x);
    if (x >= a)
        wave = fmax(wave, x + a * b / x); /* the share of C that can be computed is t^2 / 4ab until 2b */
    double ideal = fmin(wave, fmax(t_in, t_c) + t_out);
    /* One thread stages a quarter of what four do: they stage 32.5 GB/s up and 26 GB/s home (an H200's host,
       2026-11-20). The same threads do both. */
    if (cores) ideal = fmax(ideal, (in / 32.5e9 + bytes_c / 26e9) * 4 / cores);
    return ideal;
}
