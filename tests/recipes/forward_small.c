// SPDX-License-Identifier: MIT
// What Julia's libblastrampoline does with a library that it is given: opens it apart from all others, finds
// out about its integers, and calls its routines by names with a suffix. FlexiBLAS does so without one.
// Usage: forward_small LIBRARY [SUFFIX]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N = 200 };
static double a[N * N], b[N * N], c[N * N];
static void *library;
static const char *suffix = "";

static void *find(const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    void *found = dlsym(library, full);
    if (!found) fprintf(stderr, "no %s\n", full);
    return found;
}

int main(int count, char **names)
{
    int64_t width = (int64_t)0xffffffff00000003, one = 1, n = N, info = 0, pivots[N];
    float x[3] = { 1, 2, 1 };
    double scale = 1, zero = 0, sum = 0;
    if (count > 2) suffix = names[2];
    library = count > 1 ? dlopen(names[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    if (!library) return 1;
    int64_t (*isamax)() = (int64_t(*)())find("isamax_");
    float (*sdot)() = (float (*)())find("sdot_");
    void (*dgemm)() = (void (*)())find("dgemm_"), (*dgesv)() = (void (*)())find("dgesv_");
    if (!isamax || !sdot || !dgemm || !dgesv) return 1;
    // 64-bit integers read a negative number of elements, 32-bit ones three.
    printf("%d-bit integers\n", (int)isamax(&width, x, &one) == 0 ? 64 : 32);
    printf("sdot: %g\n", sdot(&one, x, &one, x, &one));
    for (int i = 0; i < N * N; i++) a[i] = i * 31 % 17 + 900 * (i % (N + 1) == 0), b[i] = i % 5;
    dgemm("N", "T", &n, &n, &n, &scale, a, &n, b, &n, &zero, c, &n, 1L, 1L);
    for (int i = 0; i < N * N; i++) sum += c[i];
    dgesv(&n, &n, a, &n, pivots, c, &n, &info);
    for (int i = 0; i < N * N; i++) zero += (c[i] - b[i / N + i % N * N]) * (c[i] - b[i / N + i % N * N]);
    printf("%.0f %d %d\n", sum, (int)info, zero < 1e-18);
    return 0;
}
