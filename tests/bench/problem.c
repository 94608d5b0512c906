/* SPDX-License-Identifier: MIT */
/* Problems on the device: their operands, one call, its time, its error, its kernel; see gpu.h.
   A and B hold one pattern of normal random numbers again and again, so that the host knows every element without a copy of them all.
   The pattern's length is a prime: no column looks like its neighbour. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

enum { PATTERN = 16777213, MOST_SETS = 64, CHECKED = 64, CHECKED_PRODUCTS = 1 << 23 };

typedef struct stretch { gpu_address device; size_t floats, first; } stretch;      /* element x is pattern[(first + x) % PATTERN] */
static stretch a, b, c;
static float *pattern;
static struct { const float **a, **b; float **c; gpu_address device; size_t entries; } pointers;

double problem_flops(const problem *p) { return 2.0 * p->m * p->n * p->k * p->batch; }

/* Floats from one member of a batch to the next, one set of operands to the next. */
static size_t member(int ld, int cols, int batch)
{
    size_t floats = (size_t)ld * (size_t)cols;
    return batch > 1 ? floats : (floats + 127) / 64 * 64;
}
static size_t member_a(const problem *p) { return member(p->lda, p->ta == 'N' ? p->k : p->m, p->batch); }
static size_t member_b(const problem *p) { return member(p->ldb, p->tb == 'N' ? p->n : p->k, p->batch); }
static size_t member_c(const problem *p) { return member(p->ldc, p->n, p->batch); }

size_t problem_sets(const problem *p)
{
    size_t floats = (member_a(p) + member_b(p) + member_c(p)) * (size_t)p->batch, count = 3 * (size_t)cuda.l2 / (4 * floats) + 3;
    return count < MOST_SETS ? count : MOST_SETS;
}

static void make_pattern(void)
{
    pattern = bench_memory(4 * (PATTERN + 1));
    gpb_reference_fill(pattern, PATTERN + 1, 1);
    for (size_t i = 0; i < PATTERN; i += 2) {                 /* Box and Muller */
        float radius = sqrtf(-2 * logf(fabsf(pattern[i]) + 0x1p-24f)), angle = 3.14159265f * pattern[i + 1];
        pattern[i] = radius * cosf(angle);
        pattern[i + 1] = radius * sinf(angle);
    }
}

static stretch stretch_make(size_t floats, size_t first, bool filled)
{
    stretch s = { 0, floats, first };
    MUST(cuMemAlloc_v2(&s.device, 4 * floats));
    for (size_t x = 0; filled && x < floats;) {
        size_t at = (first + x) % PATTERN, count = PATTERN - at < floats - x ? PATTERN - at : floats - x;
        MUST(cuMemcpyHtoD_v2(s.device + 4 * x, pattern + at, 4 * count));
        x += count;
    }
    return s;
}

void gpu_operands(const problem *all, int count)
{
    size_t most[3] = { 0, 0, 0 }, entries = 0;
    for (int i = 0; i < count; i++) {
        size_t members = problem_sets(&all[i]) * (size_t)all[i].batch;
        size_t each[3] = { member_a(&all[i]), member_b(&all[i]), member_c(&all[i]) };
        for (int x = 0; x < 3; x++)
            if (members * each[x] > most[x]) most[x] = members * each[x];
        if (all[i].how != STRIDED && members > entries) entries = members;
    }
    if (!pattern) make_pattern();
    a = stretch_make(most[0] + 256, 0, true);
    b = stretch_make(most[1] + 256, PATTERN / 3, true);
    c = stretch_make(most[2] + 256, 0, false);
    pointers.a = bench_memory(8 * entries + 8), pointers.b = bench_memory(8 * entries + 8), pointers.c = bench_memory(8 * entries + 8);
    pointers.entries = entries;
    if (entries) MUST(cuMemAlloc_v2(&pointers.device, 3 * 8 * entries));
}

/* Where a set's operand begins, in floats. */
static size_t begins(const problem *p, size_t set, size_t each) { return set * (size_t)p->batch * each + (size_t)p->shift; }

static float *address(stretch s, size_t x) { return (float *)(uintptr_t)(s.device + 4 * x); }

/* cuBLAS reads the arrays of pointers on the device, ours on the host: both are there before the clock starts. */
static void make_pointers(const problem *p)
{
    static problem made;
    if (!memcmp(&made, p, sizeof made)) return;
    memcpy(&made, p, sizeof made);                            /* padding too */
    size_t count = problem_sets(p) * (size_t)p->batch;
    const size_t batch = (size_t)p->batch, step = p->how == SHUFFLED ? 7 : 1;      /* no multiple of 7 among the batches */
    for (size_t at = 0; at < count; at++) {
        const size_t x = at / batch * batch + at % batch * step % batch;
        pointers.a[at] = address(a, x * member_a(p) + (size_t)p->shift);
        pointers.b[at] = address(b, x * member_b(p) + (size_t)p->shift);
        pointers.c[at] = address(c, x * member_c(p) + (size_t)p->shift);
    }
    MUST(cuMemcpyHtoD_v2(pointers.device, pointers.a, 8 * count));
    MUST(cuMemcpyHtoD_v2(pointers.device + 8 * pointers.entries, pointers.b, 8 * count));
    MUST(cuMemcpyHtoD_v2(pointers.device + 16 * pointers.entries, pointers.c, 8 * count));
}

static void by_ours(const problem *p, size_t set)
{
    static const float one = 1;
    const int ta = p->ta == 'N' ? 111 : 112, tb = p->tb == 'N' ? 111 : 112;
    const float *pa = address(a, begins(p, set, member_a(p))), *pb = address(b, begins(p, set, member_b(p)));
    float *pc = address(c, begins(p, set, member_c(p)));
    const size_t first = set * (size_t)p->batch;
    if (p->how != STRIDED)
        ours.batched(102, &ta, &tb, &p->m, &p->n, &p->k, &one, pointers.a + first, &p->lda, pointers.b + first, &p->ldb, &p->beta,
                     pointers.c + first, &p->ldc, 1, &p->batch);
    else if (p->batch > 1)
        ours.strided(102, ta, tb, p->m, p->n, p->k, 1, pa, p->lda, (int)member_a(p), pb, p->ldb, (int)member_b(p), p->beta, pc, p->ldc,
                     (int)member_c(p), p->batch);
    else
        ours.sgemm(102, ta, tb, p->m, p->n, p->k, 1, pa, p->lda, pb, p->ldb, p->beta, pc, p->ldc);
}

static void by_cublas(const problem *p, size_t set)
{
    static const float one = 1;
    const int ta = p->ta != 'N', tb = p->tb != 'N';
    const float *pa = address(a, begins(p, set, member_a(p))), *pb = address(b, begins(p, set, member_b(p)));
    float *pc = address(c, begins(p, set, member_c(p)));
    const gpu_address first = pointers.device + 8 * set * (size_t)p->batch;
    if (p->how != STRIDED)
        must(cublas.batched(cublas.handle, ta, tb, p->m, p->n, p->k, &one, (const float *const *)(uintptr_t)first, p->lda,
                            (const float *const *)(uintptr_t)(first + 8 * pointers.entries), p->ldb, &p->beta,
                            (float *const *)(uintptr_t)(first + 16 * pointers.entries), p->ldc, p->batch), "cublasSgemmBatched");
    else if (p->batch > 1)
        must(cublas.strided(cublas.handle, ta, tb, p->m, p->n, p->k, &one, pa, p->lda, (long long)member_a(p), pb, p->ldb,
                            (long long)member_b(p), &p->beta, pc, p->ldc, (long long)member_c(p), p->batch), "cublasSgemmStridedBatched");
    else
        must(cublas.sgemm(cublas.handle, ta, tb, p->m, p->n, p->k, &one, pa, p->lda, pb, p->ldb, &p->beta, pc, p->ldc), "cublasSgemm");
}

void gpu_multiply(enum gpu_who who, const problem *p, size_t set)
{
    if (p->how != STRIDED) make_pointers(p);
    if (who == GPU_OURS) by_ours(p, set % problem_sets(p));
    else by_cublas(p, set % problem_sets(p));
}

static double by_events(const problem *p, size_t set)
{
    static void *begin, *end;
    float ms;
    if (!begin) MUST(cuEventCreate(&begin, 0));
    if (!end) MUST(cuEventCreate(&end, 0));
    MUST(cuEventRecord(begin, NULL));
    gpu_multiply(GPU_CUBLAS, p, set);
    MUST(cuEventRecord(end, NULL));
    MUST(cuEventSynchronize(end));
    MUST(cuEventElapsedTime(&ms, begin, end));
    return 1e-3 * (double)ms;
}

double gpu_timed(enum gpu_who who, const problem *p, size_t set, bool events)
{
    if (p->how != STRIDED) make_pointers(p);
    if (events) return by_events(p, set);
    double start = seconds_now();
    gpu_multiply(who, p, set);
    if (who == GPU_CUBLAS) MUST(cuStreamSynchronize(NULL));
    return seconds_now() - start;
}

static double element(stretch s, size_t x) { return (double)pattern[(s.first + x) % PATTERN]; }

/* |e| / (|A||B|) of entry (i, j) of a member, given what was computed. */
static double error_at(const problem *p, size_t l, size_t i, size_t j, float got)
{
    const size_t pa = l * member_a(p) + (size_t)p->shift, pb = l * member_b(p) + (size_t)p->shift;
    const size_t lda = (size_t)p->lda, ldb = (size_t)p->ldb;
    double value = 0, product = 0;
    for (size_t q = 0; q < (size_t)p->k; q++) {
        double x = element(a, pa + (p->ta == 'N' ? i + q * lda : q + i * lda));
        double y = element(b, pb + (p->tb == 'N' ? q + j * ldb : j + q * ldb));
        value += x * y, product += fabs(x * y);
    }
    return fabs((double)got - value) / product;
}

double gpu_error(enum gpu_who who, const problem *p)
{
    const int count = CHECKED_PRODUCTS / p->k < 4 ? 4 : CHECKED_PRODUCTS / p->k < CHECKED ? CHECKED_PRODUCTS / p->k : CHECKED;
    const float before = p->beta == 0 ? NAN : 1;              /* of C; poison where it is not to be read */
    size_t l[CHECKED], i[CHECKED], j[CHECKED];
    gpu_address at[CHECKED];
    double worst = 0;
    for (int x = 0; x < count; x++) {                         /* corners first: the last row and column are where edges go wrong */
        l[x] = x == 1 ? (size_t)p->batch - 1 : (size_t)(random() % p->batch);
        i[x] = x < 2 ? (size_t)p->m - 1 : (size_t)(random() % p->m);
        j[x] = x < 2 ? (size_t)p->n - 1 : (size_t)(random() % p->n);
        at[x] = c.device + 4 * (l[x] * member_c(p) + (size_t)p->shift + i[x] + j[x] * (size_t)p->ldc);
        MUST(cuMemcpyHtoD_v2(at[x], &before, 4));
    }
    gpu_multiply(who, p, 0);
    MUST(cuStreamSynchronize(NULL));
    for (int x = 0; x < count; x++) {
        float got;
        MUST(cuMemcpyDtoH_v2(&got, at[x], 4));
        double error = error_at(p, l[x], i[x], j[x], got - p->beta);
        worst = isnan(error) || isnan(worst) ? NAN : fmax(worst, error);
    }
    return 0x1p24 * worst;
}

const char *gpu_choice(const problem *p, char *text, size_t size)
{
    char trace[2048] = "", *kernel, *splits;
    int stderr_now = dup(STDERR_FILENO), file = memfd_create("trace", 0);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    gpu_option("VERBOSE", "1");
    gpu_multiply(GPU_OURS, p, 0);
    gpu_option("VERBOSE", NULL);
    dup2(stderr_now, STDERR_FILENO);
    if (pread(file, trace, sizeof trace - 1, 0) < 0) *trace = 0;
    close(file), close(stderr_now);
    kernel = strstr(trace, " kernel=");
    if (!kernel || strstr(trace, " route=host")) return snprintf(text, size, "host"), text;
    snprintf(text, size, "%.*s", (int)strcspn(kernel + 8, " "), kernel + 8);
    if ((splits = strstr(trace, " splits=")) && strncmp(splits, " splits=1 ", 10) && strncmp(splits, " splits=0 ", 10))
        snprintf(text + strlen(text), size - strlen(text), "/%d", atoi(splits + 8));
    return text;
}
