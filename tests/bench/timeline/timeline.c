/* SPDX-License-Identifier: MIT */
/* Where the microseconds of a call go. Usage: timeline [--list] [--device] N ...: of the median of 101 calls of N x N x N from ordinary
   host memory (or on the device), what each of the driver's functions took, and between which microseconds each was called. --list: the
   driver's calls one by one. $TIMELINE_DRIVER: the real libcuda.so.1. */
#include <cuda.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "tests/bench/timeline/timeline.h"

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const float *alpha, const float *a,
            const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc);

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

static float *matrix(int n, bool device)
{
    const size_t count = (size_t)n * (size_t)n;
    float *host = malloc(4 * count);
    CUdeviceptr at;
    if (!host) exit(1);
    for (size_t i = 0; i < count; i++) host[i] = (float)((double)rand() / RAND_MAX - 0.5);
    if (!device) return host;
    if (cuMemAlloc(&at, 4 * count) || cuMemcpyHtoDAsync(at, host, 4 * count, NULL) || cuStreamSynchronize(NULL)) exit(1);
    free(host);
    return (float *)(uintptr_t)at;
}

static void print_list(const record *r, double us)
{
    for (int i = 0; i < r->made; i++)
        printf("  %9.2f %7.2f  %-24s %zu\n", us * (double)(r->of[i].begin - r->begin), us * (double)(r->of[i].end - r->of[i].begin),
               r->of[i].name, r->of[i].bytes);
}

/* When the first call of that name began and the last one ended; of queries, those that were answered with yes. */
static void print_milestones(const record *r, const char *name, double us)
{
    const timeline_call *first = NULL, *last = NULL;
    for (int i = 0; i < r->made; i++)
        if (strncmp(r->of[i].name, name, strlen(name)) == 0 && (strcmp(name, "cuEventQuery") != 0 || r->of[i].bytes)) {
            if (!first) first = &r->of[i];
            last = &r->of[i];
        }
    if (first) printf("  %s %.1f to %.1f;", name, us * (double)(first->begin - r->begin), us * (double)(last->end - r->begin));
}

static void print(int n, const record *r, double us)
{
    struct sum { const char *name; int calls; uint64_t cycles; size_t bytes; } sums[NAMES] = { { 0 } };
    uint64_t in_driver = 0;
    for (int i = 0; i < r->made; i++) {
        int at = 0;
        while (sums[at].name && strcmp(sums[at].name, r->of[i].name) != 0 && at < NAMES - 1) at++;
        sums[at].name = r->of[i].name;
        sums[at].calls++, sums[at].cycles += r->of[i].end - r->of[i].begin, sums[at].bytes += r->of[i].bytes;
        in_driver += r->of[i].end - r->of[i].begin;
    }
    const double total = us * (double)(r->end - r->begin);
    printf("n = %d: %.1f us, %.1f of them in the driver\n", n, total, us * (double)in_driver);
    for (int i = 0; i < NAMES && sums[i].name; i++) {
        const struct sum *s = &sums[i];
        printf("  %-24s %4d calls %8.1f us, %6.2f each", s->name, s->calls, us * (double)s->cycles, us * (double)s->cycles / s->calls);
        if (s->bytes) printf(strcmp(s->name, "cuEventQuery") == 0 ? ", %zu of them yes" : ", %zu bytes", s->bytes);
        printf("\n");
    }
    static const char *const milestones[] = { "cuMemcpyHtoD", "cuLaunch", "cuMemcpyDtoH", "cuMemcpy2D", "cuEventQuery",
                                              "cuStreamSynchronize" };
    for (size_t i = 0; i < sizeof milestones / sizeof *milestones; i++) print_milestones(r, milestones[i], us);
    printf(" end %.1f us\n", total);
}

int main(int argc, char **argv)
{
    bool list = false, device = false;
    const double us = cycle_us();
    CUdevice gpu;
    CUcontext context;
    if (cuInit(0) || cuDeviceGet(&gpu, 0) || cuDevicePrimaryCtxRetain(&context, gpu) || cuCtxPushCurrent(context)) return 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) list = true;
        else if (strcmp(argv[i], "--device") == 0) device = true;
        if (argv[i][0] == '-') continue;
        const int n = atoi(argv[i]);
        const float one = 1, zero = 0;
        float *a = matrix(n, device), *b = matrix(n, device), *c = matrix(n, device);
        record records[CALLS];
        for (int x = -WARM; x < CALLS; x++) {
            record r = { .begin = 0 };
            timeline_restart();
            r.begin = __rdtsc();
            sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
            r.end = __rdtsc();
            if (x < 0) continue;
            const timeline_call *calls = timeline_calls(&r.made);
            r.of = malloc((size_t)r.made * sizeof *r.of);
            if (!r.of && r.made) return 1;
            memcpy(r.of, calls, (size_t)r.made * sizeof *r.of);
            records[x] = r;
        }
        qsort(records, CALLS, sizeof *records, by_length);
        print(n, &records[CALLS / 2], us);
        if (list) print_list(&records[CALLS / 2], us);
    }
    return 0;
}
