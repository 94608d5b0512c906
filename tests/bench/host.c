/* SPDX-License-Identifier: MIT */
/* GEMM on host memory; see host.h. */
#include "tests/bench/host.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/bench.h"
#include "tests/cblas.h"

/* As they are, and as NumPy's and SciPy's wheels have them. Fortran last: row-major comes by C. */
static const struct { const char *name; bool wide, fortran; } spellings[] = {
    { "cblas_sgemm", false, false }, { "scipy_cblas_sgemm", false, false },
    { "scipy_cblas_sgemm64_", true, false },
    { "cblas_sgemm64_", true, false }, { "sgemm_", false, true }, { "sgemm_64_", true, true },
};
enum { SPELLINGS = sizeof spellings / sizeof *spellings, PATTERN = 16777213 };

#define TYPE(letter, type, bytes, flops, kind)                                                    \
    typedef void letter##_narrow(CBLAS_GEMM(type, kind));                                          \
    typedef void letter##_wide(GPB_CBLAS_GEMM_PARAMS(CBLAS_ELEMENT_##kind(type),                   \
                                                     CBLAS_SCALAR_##kind(type), int64_t));
#include "dispatch/type.def"
#undef TYPE
typedef void narrow_fortran(GPB_F77_GEMM_PARAMS(void, int32_t), size_t, size_t);
typedef void wide_fortran(GPB_F77_GEMM_PARAMS(void, int64_t), size_t, size_t);

/* A type's routine by that spelling. */
static void *routine(void *library, const char *spelling, enum gpb_type type)
{
    char name[32];
    snprintf(name, sizeof name, "%s", spelling);
    *strstr(name, "sgemm") = gpb_type_of(type)->letter;
    return dlsym(library, name);
}

static void find_routines(blas *b, void *library)
{
    for (enum gpb_type t = 0; t < GPB_TYPES; t++) b->call[t] = routine(library, b->spelling, t);
}

static blas open_in(const char *path, int mode, const char *spelling)
{
    blas b = { .library = dlopen(path, mode) };
    if (!b.library) {
        fprintf(stderr, "bench: %s\n", dlerror());
        exit(77);
    }
    for (int i = 0; i < SPELLINGS && !b.call[GPB_TYPE_s]; i++) {
        if (spelling && strcmp(spelling, spellings[i].name)) continue;
        b.spelling = spellings[i].name;
        b.wide = spellings[i].wide;
        b.fortran = spellings[i].fortran;
        find_routines(&b, b.library);
    }
    if (!b.call[GPB_TYPE_s]) {
        fprintf(stderr, "bench: %s: no %s\n", path, spelling ? spelling : "SGEMM by any name");
        exit(1);
    }
    return b;
}

blas blas_open(const char *path, const char *spelling) { return open_in(path, RTLD_NOW, spelling); }

blas blas_as_linked(const char *path)
{
    blas b = open_in(path, RTLD_NOW | RTLD_GLOBAL, NULL);
    find_routines(&b, RTLD_DEFAULT);
    return b;
}

static int cblas_letter(char trans) { return trans == 'N' ? NO_TRANS : trans == 'T' ? TRANS : CONJ_TRANS; }

static void by_fortran(const blas *by, const gpb_call *g)
{
    const gpb_element alpha = gpb_element_of(g->type, g->alpha), beta = gpb_element_of(g->type, g->beta);
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    const int64_t ldc = g->x[GPB_C].ld;
    void *const call = by->call[g->type], *c = gpb_call_member(g, GPB_C, 0);
    if (by->wide) {
        ((wide_fortran *)call)(&a->trans, &b->trans, &g->m, &g->n, &g->k, &alpha, a->base, &a->ld, b->base,
                               &b->ld, &beta, c, &ldc, 1, 1);
        return;
    }
    const int32_t m = (int32_t)g->m, n = (int32_t)g->n, k = (int32_t)g->k, lda = (int32_t)a->ld,
        ldb = (int32_t)b->ld;
    const int32_t narrow_ldc = (int32_t)ldc;
    ((narrow_fortran *)call)(&a->trans, &b->trans, &m, &n, &k, &alpha, a->base, &lda, b->base, &ldb, &beta, c,
                             &narrow_ldc, 1, 1);
}

static void by_c(const blas *by, int order, const gpb_call *g)
{
    const int ta = cblas_letter(g->x[GPB_A].trans), tb = cblas_letter(g->x[GPB_B].trans);
    const gpb_element alpha = gpb_element_of(g->type, g->alpha), beta = gpb_element_of(g->type, g->beta);
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    const int64_t ldc = g->x[GPB_C].ld;
    void *const call = by->call[g->type], *c = gpb_call_member(g, GPB_C, 0);
    switch (g->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                              \
    case GPB_TYPE_##letter:                                                                                 \
        if (by->wide)                                                                                       \
            ((letter##_wide *)call)(order, ta, tb, g->m, g->n, g->k, CBLAS_PASS_##kind(alpha.letter),       \
                                    a->base, a->ld, b->base, b->ld, CBLAS_PASS_##kind(beta.letter), c, ldc); \
        else                                                                                                \
            ((letter##_narrow *)call)(order, ta, tb, (int)g->m, (int)g->n, (int)g->k,                       \
                                      CBLAS_PASS_##kind(alpha.letter), a->base, (int)a->ld, b->base,        \
                                      (int)b->ld, CBLAS_PASS_##kind(beta.letter), c, (int)ldc);              \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
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

typedef struct share { char *at; size_t bytes, first, real; pthread_t thread; } share;

/* Random real numbers of 4 or 8 bytes. How many is a prime: no column looks like its neighbour. */
static const char *pattern_of(size_t real)
{
    static void *patterns[2];
    void **of = &patterns[real == sizeof(double)];
    uint64_t state = 1;
    if (*of) return *of;
    *of = bench_memory(real * PATTERN);
    if (real == sizeof(float)) gpb_reference_fill(*of, PATTERN, 1);
    else gpb_fill(GPB_FILL_uniform, GPB_TYPE_d, *of, PATTERN, &state);
    return *of;
}

static void *write_share(void *of)
{
    share *s = of;
    const char *pattern = pattern_of(s->real);
    const size_t all = s->real * PATTERN;
    for (size_t x = 0; x < s->bytes;) {
        size_t from = (s->first + x) % all;
        size_t count = all - from < s->bytes - x ? all - from : s->bytes - x;
        memcpy(s->at + x, pattern + from, count);
        x += count;
    }
    return NULL;
}

/* By as many threads as the process may have cores, because a fresh page costs 1.85 us on one core and 0.18
   us on 16 (evidence/machine.md). */
static void write_all(slab *s, size_t real)
{
    enum { MAX_SHARES = 64, LINE = 64 };
    share shares[MAX_SHARES];
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    if (count > MAX_SHARES) count = MAX_SHARES;
    pattern_of(real);
    for (int i = 0; i < count; i++) {
        const size_t each = s->bytes / (size_t)count / LINE * LINE, from = each * (size_t)i;
        const size_t to = i == count - 1 ? s->bytes : from + each;
        shares[i] = (share){ s->at + from, to - from, from + real * 7919 * s->generation, real, 0 };
        if (pthread_create(&shares[i].thread, NULL, write_share, &shares[i])) must(-1, "pthread_create");
    }
    for (int i = 0; i < count; i++) pthread_join(shares[i].thread, NULL);
    s->real = real;
    s->generation++;
}

memory memory_at(void *at, room r)
{
    return (memory){ { .at = at, .bytes = r.in }, { .at = (char *)at + r.in, .bytes = r.out } };
}

memory memory_make(room r, bool fresh)
{
    void *at = mmap(NULL, r.in + r.out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) must(-1, "mmap");
    memory m = memory_at(at, r);
    m.in.fresh = m.out.fresh = fresh;
    return m;
}

/* Neighbours begin at different places of their pages, as what malloc hands out does. */
static size_t bytes_of(const gpb_call *g, enum gpb_operand x)
{
    const int64_t cols = x == GPB_C ? g->n : gpb_call_cols(g, x);
    return ((size_t)(g->x[x].ld * cols) * gpb_call_element(g) + 255) / 256 * 256 + 256;
}

room room_of(const gpb_call *g)
{
    return (room){ bytes_of(g, GPB_A) + bytes_of(g, GPB_B), bytes_of(g, GPB_C) };
}

static char *take(slab *s, size_t bytes, enum gpb_type type)
{
    const size_t real = gpb_type_real_bytes(type);
    if (bytes > s->bytes) must(-1, "room for operands");
    const bool is_out = s->used + bytes > s->bytes;
    if (s->real != real || (is_out && s->fresh)) write_all(s, real);
    if (is_out) s->used = 0;
    char *taken = s->at + s->used;
    s->used += bytes;
    return taken;
}

void memory_operands(memory *from, gpb_call *g, bool inside)
{
    char *const a = take(&from->in, bytes_of(g, GPB_A) + bytes_of(g, GPB_B), g->type);
    char *const at[GPB_OPERANDS] = { a, a + bytes_of(g, GPB_A),
                                     take(&from->out, bytes_of(g, GPB_C), g->type) };
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) {
        const int64_t rows = x == GPB_C ? g->m : gpb_call_rows(g, x);
        g->x[x].base = at[x] + (inside ? (g->x[x].ld - rows) / 2 * (int64_t)gpb_call_element(g) : 0);
    }
}

/* ---- the answer ---- */

static void *entry(const check *c, const gpb_call *g, int x)
{
    return (char *)gpb_call_member(g, GPB_C, 0)
        + (c->i[x] + c->j[x] * g->x[GPB_C].ld) * (int64_t)gpb_call_element(g);
}

void check_draw(check *c, const gpb_call *g, int count)
{
    c->count = count < CHECKED ? count : CHECKED;
    for (int x = 0; x < c->count; x++) {
        c->i[x] = x < 2 ? g->m - 1 : random() % g->m;
        c->j[x] = x == 0 || x == 2 ? g->n - 1 : random() % g->n;
        memcpy(&c->old[x], entry(c, g, x), gpb_call_element(g));
    }
    for (int x = 0; x < c->count && g->beta == 0; x++) gpb_poison(g->type, entry(c, g, x), 1);
}

double check_worst(const check *c, const gpb_call *g)
{
    const int parts = gpb_type_of(g->type)->kind == GPB_TYPE_COMPLEX ? 2 : 1;
    double worst = 0;
    for (int x = 0; x < c->count; x++) {
        gpb_reference_element sums[GPB_REFERENCE_SUMS];
        const void *got = entry(c, g, x);
        gpb_reference_sums(g, c->i[x], c->j[x], 0, sums);
        for (int part = 0; part < parts; part++) {
            const gpb_reference_element e = gpb_reference_scaled(g, sums, &c->old[x], part);
            if (isnan(gpb_reference_value(g, got, part))) return INFINITY;
            worst = fmax(worst, gpb_reference_error(GPB_MATH_FMA, g, e, got, part));
        }
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
    const double link = 50e9, rate = gpb_type_real_bytes(g->type) == sizeof(float) ? 200e12 : 60e12;
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
