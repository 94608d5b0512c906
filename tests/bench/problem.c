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

enum { PATTERN = 16777213, MOST_SETS = 64 };

typedef struct stretch { gpu_address device; size_t floats, first; } stretch;      /* element x is pattern[(first + x) % PATTERN] */
static stretch filled[2], others[2], c;                       /* A and B of the pattern, and of other data */
static struct { float *image; problem of; } kept[2];          /* one set of the other data, and the problem that it was made for */
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

static void raise_to(size_t *most, size_t value)
{
    if (value > *most) *most = value;
}

void gpu_operands(const problem *all, int count)
{
    size_t most[2][2] = { { 0 } }, most_c = 0, entries = 0;   /* of A and B: of the pattern, of other data */
    for (int i = 0; i < count; i++) {
        size_t members = problem_sets(&all[i]) * (size_t)all[i].batch;
        raise_to(&most[0][all[i].data != NULL], members * member_a(&all[i]));
        raise_to(&most[1][all[i].data != NULL], members * member_b(&all[i]));
        raise_to(&most_c, members * member_c(&all[i]));
        if (all[i].how != STRIDED) raise_to(&entries, members);
    }
    if (!pattern) make_pattern();
    for (int x = 0; x < 2; x++) {
        filled[x] = stretch_make(most[x][0] + 256, x ? PATTERN / 3 : 0, true);
        others[x] = stretch_make(most[x][1] + 256, 0, false);
    }
    c = stretch_make(most_c + 256, 0, false);
    pointers.a = bench_memory(8 * entries + 8), pointers.b = bench_memory(8 * entries + 8), pointers.c = bench_memory(8 * entries + 8);
    pointers.entries = entries;
    if (entries) MUST(cuMemAlloc_v2(&pointers.device, 3 * 8 * entries));
}

/* Where a set's operand begins, in floats. */
static size_t begins(const problem *p, size_t set, size_t each) { return set * (size_t)p->batch * each + (size_t)p->shift; }

static float *address(stretch s, size_t x) { return (float *)(uintptr_t)(s.device + 4 * x); }
static stretch operand(const problem *p, bool is_b) { return p->data ? others[is_b] : filled[is_b]; }

/* Have they the same A, or the same B? */
static bool same(const problem *x, const problem *y, bool is_b)
{
    if (!x->data || !y->data || x->k != y->k) return false;
    return is_b ? x->data->b == y->data->b && x->n == y->n && x->tb == y->tb && x->ldb == y->ldb
                : x->data->a == y->data->a && x->m == y->m && x->ta == y->ta && x->lda == y->lda;
}

void gpu_prepare(const problem *p)
{
    for (int x = 0; x < 2 && p->data; x++) {
        const size_t floats = x ? member_b(p) : member_a(p);
        if (same(&kept[x].of, p, x)) continue;
        free(kept[x].image);
        kept[x].image = bench_memory(4 * floats);
        kept[x].of = *p;
        data_fill(p, x, kept[x].image);
        for (size_t set = 0; set < problem_sets(p); set++)
            MUST(cuMemcpyHtoD_v2(others[x].device + 4 * begins(p, set, floats), kept[x].image, 4 * floats));
    }
}

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
        pointers.a[at] = address(filled[0], x * member_a(p) + (size_t)p->shift);
        pointers.b[at] = address(filled[1], x * member_b(p) + (size_t)p->shift);
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
    const float *pa = address(operand(p, false), begins(p, set, member_a(p))), *pb = address(operand(p, true), begins(p, set, member_b(p)));
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
    const float *pa = address(operand(p, false), begins(p, set, member_a(p))), *pb = address(operand(p, true), begins(p, set, member_b(p)));
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

/* Element x of an operand as the first set has it. */
static float element(const problem *p, bool is_b, size_t x)
{
    return p->data ? kept[is_b].image[x] : pattern[(filled[is_b].first + x + (size_t)p->shift) % PATTERN];
}

float gpu_element_a(const problem *p, int member, int i, int q)
{
    const size_t x = p->ta == 'N' ? (size_t)i + (size_t)q * (size_t)p->lda : (size_t)q + (size_t)i * (size_t)p->lda;
    return element(p, false, x + (size_t)member * member_a(p));
}

float gpu_element_b(const problem *p, int member, int q, int j)
{
    const size_t x = p->tb == 'N' ? (size_t)q + (size_t)j * (size_t)p->ldb : (size_t)j + (size_t)q * (size_t)p->ldb;
    return element(p, true, x + (size_t)member * member_b(p));
}

gpu_address gpu_place_c(const problem *p, int member, int column)
{
    return c.device + 4 * ((size_t)member * member_c(p) + (size_t)p->shift + (size_t)column * (size_t)p->ldc);
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
