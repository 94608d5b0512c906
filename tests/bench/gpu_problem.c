/* SPDX-License-Identifier: MIT */
/* Problems on the device: their operands, one call, its time, its error, its kernel. See gpu.h. A and B hold
   one pattern of normal random numbers again and again, so the host knows every element without a copy of
   them all. The pattern's length is a prime, so no column looks like its neighbour. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

enum { PATTERN = 16777213, MAX_SETS = 64 };

typedef struct stretch {
    gpu_address device;
    size_t floats, first;
} stretch;      /* element x is pattern[(first + x) % PATTERN] */
static stretch filled[2], others[2], c;                       /* A and B of the pattern, and of other data */
static struct {
    float *image;
    gpu_problem of;
} kept[2]; /* one set of the other data, and the problem that it was made for */
static float *pattern;
static struct { const float **a, **b; float **c; gpu_address device; size_t entries; } pointers;

double gpu_flops(const gpu_problem *p)
{
    const gpb_call g = gpb_problem_call(&p->of, 1, (double)p->beta, NULL, NULL, NULL);
    return gpb_test_flops(p->of.routine, &g);
}

/* Floats from one member of a batch to the next, one set of operands to the next. */
static size_t stride_of(const gpu_problem *p, enum gpb_operand x)
{
    const size_t floats = (size_t)p->of.ld[x] * (size_t)gpb_problem_lines(&p->of, x);
    return p->of.batch > 1 ? floats : (floats + 127) / 64 * 64;
}

size_t gpu_sets(const gpu_problem *p)
{
    const size_t floats = stride_of(p, GPB_A) + stride_of(p, GPB_B) + stride_of(p, GPB_C);
    const size_t count = 3 * (size_t)cuda.l2 / (4 * floats * (size_t)p->of.batch) + 3;
    return count < MAX_SETS ? count : MAX_SETS;
}

static enum gpb_test_members members_of(const gpu_problem *p)
{
    return gpb_test_row_of(p->of.routine)->members;
}
static bool is_by_arrays(const gpu_problem *p) { return members_of(p) == GPB_MEMBERS_ARRAYS; }

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

void gpu_operands(const gpu_problem *all, int count)
{
    size_t most[2][2] = { { 0 } }, max_c = 0, entries = 0;   /* of A and B: of the pattern, of other data */
    for (int i = 0; i < count; i++) {
        size_t members = gpu_sets(&all[i]) * (size_t)all[i].of.batch;
        raise_to(&most[0][all[i].data != NULL], members * stride_of(&all[i], GPB_A));
        raise_to(&most[1][all[i].data != NULL], members * stride_of(&all[i], GPB_B));
        raise_to(&max_c, members * stride_of(&all[i], GPB_C));
        if (is_by_arrays(&all[i])) raise_to(&entries, members);
    }
    if (!pattern) make_pattern();
    for (int x = 0; x < 2; x++) {
        filled[x] = stretch_make(most[x][0] + 256, x ? PATTERN / 3 : 0, true);
        others[x] = stretch_make(most[x][1] + 256, 0, false);
    }
    c = stretch_make(max_c + 256, 0, false);
    pointers.a = bench_memory(8 * entries + 8);
    pointers.b = bench_memory(8 * entries + 8);
    pointers.c = bench_memory(8 * entries + 8);
    pointers.entries = entries;
    if (entries) MUST(cuMemAlloc_v2(&pointers.device, 3 * 8 * entries));
}

/* Where a set's operand begins, in floats. */
static size_t begins(const gpu_problem *p, size_t set, size_t each)
{
    return set * (size_t)p->of.batch * each + (size_t)p->of.offset;
}

static float *address(stretch s, size_t x) { return (float *)(uintptr_t)(s.device + 4 * x); }
static stretch operand(const gpu_problem *p, bool is_b) { return p->data ? others[is_b] : filled[is_b]; }

/* Have they the same A, or the same B? */
static bool same(const gpu_problem *x, const gpu_problem *y, bool is_b)
{
    if (!x->data || !y->data || x->of.k != y->of.k) return false;
    const enum gpb_operand o = is_b ? GPB_B : GPB_A;
    if (x->of.ld[o] != y->of.ld[o] || gpb_problem_lead(&x->of, o) != gpb_problem_lead(&y->of, o))
        return false;
    if (is_b) return x->data->b == y->data->b && x->of.n == y->of.n && x->of.transb == y->of.transb;
    return x->data->a == y->data->a && x->of.m == y->of.m && x->of.transa == y->of.transa;
}

void gpu_prepare(const gpu_problem *p)
{
    for (int x = 0; x < 2 && p->data; x++) {
        const size_t floats = stride_of(p, x ? GPB_B : GPB_A);
        if (same(&kept[x].of, p, x)) continue;
        free(kept[x].image);
        kept[x].image = bench_memory(4 * floats);
        kept[x].of = *p;
        data_fill(p, x, kept[x].image);
        for (size_t set = 0; set < gpu_sets(p); set++)
            MUST(cuMemcpyHtoD_v2(others[x].device + 4 * begins(p, set, floats), kept[x].image, 4 * floats));
    }
}

/* cuBLAS reads the arrays of pointers on the device, and our library reads them on the host. Both are there
   before the clock starts. */
static void make_pointers(const gpu_problem *p)
{
    static gpu_problem made;
    if (!memcmp(&made, p, sizeof made)) return;
    memcpy(&made, p, sizeof made);                            /* padding too */
    size_t count = gpu_sets(p) * (size_t)p->of.batch;
    const size_t batch = (size_t)p->of.batch;
    const size_t step = p->shuffled ? 7 : 1;                  /* no multiple of 7 among the batches */
    for (size_t at = 0; at < count; at++) {
        const size_t x = at / batch * batch + at % batch * step % batch;
        pointers.a[at] = address(filled[0], x * stride_of(p, GPB_A) + (size_t)p->of.offset);
        pointers.b[at] = address(filled[1], x * stride_of(p, GPB_B) + (size_t)p->of.offset);
        pointers.c[at] = address(c, x * stride_of(p, GPB_C) + (size_t)p->of.offset);
    }
    MUST(cuMemcpyHtoD_v2(pointers.device, pointers.a, 8 * count));
    MUST(cuMemcpyHtoD_v2(pointers.device + 8 * pointers.entries, pointers.b, 8 * count));
    MUST(cuMemcpyHtoD_v2(pointers.device + 16 * pointers.entries, pointers.c, 8 * count));
}

/* What a call gets of a set of operands. */
typedef struct arguments {
    const float *a, *b;
    float *c;
    size_t first;                                             /* of a batch by arrays: its place in these */
} arguments;

static arguments arguments_of(const gpu_problem *p, size_t set)
{
    return (arguments){ address(operand(p, false), begins(p, set, stride_of(p, GPB_A))),
                        address(operand(p, true), begins(p, set, stride_of(p, GPB_B))),
                        address(c, begins(p, set, stride_of(p, GPB_C))), set * (size_t)p->of.batch };
}

static void by_ours(const gpu_problem *p, size_t set)
{
    static const float one = 1;
    const gpb_problem *of = &p->of;
    const arguments at = arguments_of(p, set);
    const int ta = of->transa == 'N' ? 111 : 112, tb = of->transb == 'N' ? 111 : 112;
    const int lda = of->ld[GPB_A], ldb = of->ld[GPB_B], ldc = of->ld[GPB_C];
    switch (members_of(p)) {
    case GPB_MEMBERS_ARRAYS:
        ours.batched(102, &ta, &tb, &of->m, &of->n, &of->k, &one, pointers.a + at.first, &lda,
                     pointers.b + at.first, &ldb, &p->beta, pointers.c + at.first, &ldc, 1, &of->batch);
        break;
    case GPB_MEMBERS_STRIDED:
        ours.strided(102, ta, tb, of->m, of->n, of->k, 1, at.a, lda, (int)stride_of(p, GPB_A), at.b, ldb,
                     (int)stride_of(p, GPB_B), p->beta, at.c, ldc, (int)stride_of(p, GPB_C), of->batch);
        break;
    default: ours.sgemm(102, ta, tb, of->m, of->n, of->k, 1, at.a, lda, at.b, ldb, p->beta, at.c, ldc);
    }
}

static int cublas_strided(const gpu_problem *p, const arguments *at, int ta, int tb)
{
    static const float one = 1;
    const gpb_problem *of = &p->of;
    const long long stride_a = (long long)stride_of(p, GPB_A), stride_b = (long long)stride_of(p, GPB_B);
    return cublas.strided(cublas.handle, ta, tb, of->m, of->n, of->k, &one, at->a, of->ld[GPB_A], stride_a,
                          at->b, of->ld[GPB_B], stride_b, &p->beta, at->c, of->ld[GPB_C],
                          (long long)stride_of(p, GPB_C), of->batch);
}

static int cublas_batched(const gpu_problem *p, const arguments *at, int ta, int tb)
{
    static const float one = 1;
    const gpb_problem *of = &p->of;
    const gpu_address a = pointers.device + 8 * at->first;
    const gpu_address b = a + 8 * pointers.entries;
    const gpu_address to = b + 8 * pointers.entries;
    return cublas.batched(cublas.handle, ta, tb, of->m, of->n, of->k, &one,
                          (const float *const *)(uintptr_t)a, of->ld[GPB_A],
                          (const float *const *)(uintptr_t)b, of->ld[GPB_B], &p->beta,
                          (float *const *)(uintptr_t)to, of->ld[GPB_C], of->batch);
}

static void by_cublas(const gpu_problem *p, size_t set)
{
    static const float one = 1;
    const gpb_problem *of = &p->of;
    const arguments at = arguments_of(p, set);
    const int ta = of->transa != 'N', tb = of->transb != 'N';
    switch (members_of(p)) {
    case GPB_MEMBERS_ARRAYS: must(cublas_batched(p, &at, ta, tb), "cublasSgemmBatched"); break;
    case GPB_MEMBERS_STRIDED: must(cublas_strided(p, &at, ta, tb), "cublasSgemmStridedBatched"); break;
    default:
        must(cublas.sgemm(cublas.handle, ta, tb, of->m, of->n, of->k, &one, at.a, of->ld[GPB_A], at.b,
                          of->ld[GPB_B], &p->beta, at.c, of->ld[GPB_C]),
             "cublasSgemm");
    }
}

void gpu_multiply(enum gpu_who who, const gpu_problem *p, size_t set)
{
    if (is_by_arrays(p)) make_pointers(p);
    if (who == GPU_OURS) by_ours(p, set % gpu_sets(p));
    else by_cublas(p, set % gpu_sets(p));
}

static double by_events(const gpu_problem *p, size_t set)
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

double gpu_timed(enum gpu_who who, const gpu_problem *p, size_t set, bool events)
{
    if (is_by_arrays(p)) make_pointers(p);
    if (events) return by_events(p, set);
    double start = seconds_now();
    gpu_multiply(who, p, set);
    if (who == GPU_CUBLAS) MUST(cuStreamSynchronize(NULL));
    return seconds_now() - start;
}

/* Element x of an operand as the first set has it. */
static float element(const gpu_problem *p, bool is_b, size_t x)
{
    return p->data ? kept[is_b].image[x] : pattern[(filled[is_b].first + x + (size_t)p->of.offset) % PATTERN];
}

float gpu_element_a(const gpu_problem *p, int member, int i, int q)
{
    const size_t ld = (size_t)p->of.ld[GPB_A], row = (size_t)i, col = (size_t)q;
    const size_t x = p->of.transa == 'N' ? row + col * ld : col + row * ld;
    return element(p, false, x + (size_t)member * stride_of(p, GPB_A));
}

float gpu_element_b(const gpu_problem *p, int member, int q, int j)
{
    const size_t ld = (size_t)p->of.ld[GPB_B], row = (size_t)q, col = (size_t)j;
    const size_t x = p->of.transb == 'N' ? row + col * ld : col + row * ld;
    return element(p, true, x + (size_t)member * stride_of(p, GPB_B));
}

gpu_address gpu_place_c(const gpu_problem *p, int member, int column)
{
    const size_t first = (size_t)member * stride_of(p, GPB_C) + (size_t)p->of.offset;
    return c.device + 4 * (first + (size_t)column * (size_t)p->of.ld[GPB_C]);
}

const char *gpu_choice(const gpu_problem *p, char *text, size_t size)
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
    close(file);
    close(stderr_now);
    kernel = strstr(trace, " kernel=");
    if (!kernel || strstr(trace, " route=host")) {
        snprintf(text, size, "host");
        return text;
    }
    snprintf(text, size, "%.*s", (int)strcspn(kernel + 8, " "), kernel + 8);
    if ((splits = strstr(trace, " splits=")) && strncmp(splits, " splits=1 ", 10)
        && strncmp(splits, " splits=0 ", 10))
        snprintf(text + strlen(text), size - strlen(text), "/%d", atoi(splits + 8));
    return text;
}
