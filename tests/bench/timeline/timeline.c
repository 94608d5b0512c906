/* SPDX-License-Identifier: MIT */
/* Where the microseconds of a call go. Usage: timeline [--list] [--gpu] [--pinned] [--device] N ...: of the
   median of 101 calls of N x N x N from ordinary host memory (or pinned, or on the device), what each of the
   driver's functions took, and between which microseconds each was called. --list: the driver's calls one by
   one. --gpu: copies and kernels, when each was queued, could begin (all before it on its stream was done)
   and was done; the GPU's clock begins some 10 us before the call's. $TIMELINE_DRIVER: the real
   libcuda.so.1. */
#include <cuda.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "tests/bench/timeline/timeline.h"

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc);

/* Bytes of operands that take turns: more than the last cache, so that they come from memory. */
#define ROTATING 600e6

enum { CALLS = 101, WARM = 20, NAMES = 16 /* more than timed.def has */ };

typedef struct record {
    uint64_t begin, end;
    int made;
    timeline_call *of;
} record;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Microseconds of a cycle. */
static double cycle_us(void)
{
    const double begin_s = now_s();
    const uint64_t begin = __rdtsc();
    while (now_s() - begin_s < 0.05) { }
    return 1e6 * (now_s() - begin_s) / (double)(__rdtsc() - begin);
}

static int by_length(const void *x, const void *y)
{
    const record *a = x, *b = y;
    const uint64_t la = a->end - a->begin, lb = b->end - b->begin;
    return (la > lb) - (la < lb);
}

enum place { ORDINARY, PINNED, DEVICE };

static float *matrix(int n, enum place place)
{
    const size_t count = (size_t)n * (size_t)n;
    float *host = NULL;
    CUdeviceptr at;
    if (place == PINNED && cuMemHostAlloc((void **)&host, 4 * count, 0)) exit(1);
    if (!host && !(host = malloc(4 * count))) exit(1);
    for (size_t i = 0; i < count; i++) host[i] = (float)((double)rand() / RAND_MAX - 0.5);
    if (place != DEVICE) return host;
    if (cuMemAlloc(&at, 4 * count) || cuMemcpyHtoDAsync(at, host, 4 * count, NULL)
        || cuStreamSynchronize(NULL))
        exit(1);
    free(host);
    return (float *)(uintptr_t)at;
}

static void print_list(const record *r, double us)
{
    for (int i = 0; i < r->made; i++)
        printf("  %9.2f %7.2f  %-24s %zu\n", us * (double)(r->of[i].begin - r->begin),
               us * (double)(r->of[i].end - r->of[i].begin), r->of[i].name, r->of[i].amount);
}

/* In microseconds: queued, could begin, was done; what, how much, on which of its streams. */
static void print_gpu(const record *r, double us)
{
    for (int i = 0; i < r->made; i++) {
        const timeline_call *call = &r->of[i];
        if (call->event < 0) continue;
        printf("  %9.1f %9.1f %9.1f %8.1f  %-18s %9zu  %03x\n", us * (double)(call->begin - r->begin),
               1e3 * (double)call->gpu_begin_ms, 1e3 * (double)call->gpu_end_ms,
               1e3 * (double)(call->gpu_end_ms - call->gpu_begin_ms), call->name, call->amount,
               (unsigned)((uintptr_t)call->stream >> 4 & 0xfff));
    }
}

/* When the first call of that name began and the last one ended; of queries, those that were answered with
   yes. */
static void print_milestones(const record *r, const char *name, double us)
{
    const timeline_call *first = NULL, *last = NULL;
    for (int i = 0; i < r->made; i++)
        if (strncmp(r->of[i].name, name, strlen(name)) == 0
            && (strcmp(name, "cuEventQuery") != 0 || r->of[i].amount)) {
            if (!first) first = &r->of[i];
            last = &r->of[i];
        }
    if (first)
        printf("  %s %.1f to %.1f;", name, us * (double)(first->begin - r->begin),
               us * (double)(last->end - r->begin));
}

static void print(int n, const record *r, double us)
{
    struct sum { const char *name; int calls; uint64_t cycles; size_t amount; } sums[NAMES] = { { 0 } };
    uint64_t in_driver = 0;
    for (int i = 0; i < r->made; i++) {
        int at = 0;
        while (sums[at].name && strcmp(sums[at].name, r->of[i].name) != 0 && at < NAMES - 1) at++;
        sums[at].name = r->of[i].name;
        sums[at].calls++;
        sums[at].cycles += r->of[i].end - r->of[i].begin;
        sums[at].amount += r->of[i].amount;
        in_driver += r->of[i].end - r->of[i].begin;
    }
    const double total = us * (double)(r->end - r->begin);
    printf("n = %d: %.1f us, %.1f of them in the driver\n", n, total, us * (double)in_driver);
    for (int i = 0; i < NAMES && sums[i].name; i++) {
        const struct sum *s = &sums[i];
        printf("  %-24s %4d calls %8.1f us, %6.2f each", s->name, s->calls, us * (double)s->cycles,
               us * (double)s->cycles / s->calls);
        if (s->amount)
            printf(strcmp(s->name, "cuEventQuery") == 0 ? ", %zu of them yes" : ", %zu bytes", s->amount);
        printf("\n");
    }
    static const char *const milestones[] = { "cuMemcpyHtoD", "cuLaunch",     "cuMemcpyDtoH",
                                              "cuMemcpy2D",   "cuEventQuery", "cuStreamSynchronize" };
    for (size_t i = 0; i < sizeof milestones / sizeof *milestones; i++)
        print_milestones(r, milestones[i], us);
    printf(" end %.1f us\n", total);
}

enum { MAX_SETS = 64 };
typedef struct operands {
    float *a[MAX_SETS], *b[MAX_SETS], *c[MAX_SETS];
    int sets;
} operands;

static operands make_operands(int n, enum place place)
{
    const int fit = (int)(ROTATING / (12.0 * n * n));
    operands o = { .sets = place == DEVICE || fit < 1 ? 1 : fit > MAX_SETS ? MAX_SETS : fit };
    for (int x = 0; x < o.sets; x++) {
        o.a[x] = matrix(n, place);
        o.b[x] = matrix(n, place);
        o.c[x] = matrix(n, place);
    }
    return o;
}

/* One call, and a copy of what the driver was asked in it. */
static record measured(const operands *o, int set, int n, bool gpu_times)
{
    const float one = 1, zero = 0;
    record r = { .begin = 0 };
    timeline_restart(gpu_times);
    r.begin = __rdtsc();
    sgemm_("N", "N", &n, &n, &n, &one, o->a[set], &n, o->b[set], &n, &zero, o->c[set], &n);
    r.end = __rdtsc();
    timeline_gpu();
    const timeline_call *calls = timeline_calls(&r.made);
    r.of = malloc((size_t)r.made * sizeof *r.of);
    if (!r.of && r.made) exit(1);
    memcpy(r.of, calls, (size_t)r.made * sizeof *r.of);
    return r;
}

/* The call of median length, after some to warm up. */
static record median_call(int n, enum place place, bool gpu_times)
{
    static record records[CALLS];
    const operands o = make_operands(n, place);
    for (int x = -WARM; x < CALLS; x++) {
        record r = measured(&o, (x + WARM) % o.sets, n, gpu_times);
        if (x < 0) free(r.of);
        else records[x] = r;
    }
    qsort(records, CALLS, sizeof *records, by_length);
    return records[CALLS / 2];
}

static bool open_gpu(void)
{
    CUdevice gpu;
    CUcontext context;
    return !cuInit(0) && !cuDeviceGet(&gpu, 0) && !cuDevicePrimaryCtxRetain(&context, gpu)
        && !cuCtxPushCurrent(context);
}

int main(int argc, char **argv)
{
    bool list = false, gpu_times = false;
    enum place place = ORDINARY;
    const double us = cycle_us();
    if (!open_gpu()) return 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) list = true;
        else if (strcmp(argv[i], "--gpu") == 0) gpu_times = true;
        else if (strcmp(argv[i], "--pinned") == 0) place = PINNED;
        else if (strcmp(argv[i], "--device") == 0) place = DEVICE;
        if (argv[i][0] == '-') continue;
        const int n = atoi(argv[i]);
        const record r = median_call(n, place, gpu_times);
        print(n, &r, us);
        if (list) print_list(&r, us);
        if (gpu_times) print_gpu(&r, us);
    }
    return 0;
}
