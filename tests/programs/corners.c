/* SPDX-License-Identifier: MIT */
/* Calls that stay on the GPU, in places where few programs come (test_resident.sh). Matrices are such that
   every result is exact. usage: corners WHAT [SIZE]; prints a line and exits with 1 if something is wrong. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *, double *,
             const int *, int *, size_t);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dsgesv_(const int *, const int *, double *, const int *, int *, const double *, const int *, double *,
             const int *, double *, float *, int *, int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dtrtri_(const char *, const char *, const int *, double *, const int *, int *, size_t, size_t);
void strsm_(const char *, const char *, const char *, const char *, const int *, const int *, const float *,
            const float *, const int *, float *, const int *, size_t, size_t, size_t, size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *, size_t, size_t, size_t, size_t);
void dtrmm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *, size_t, size_t, size_t, size_t);
void ssyr2k_(const char *, const char *, const int *, const int *, const float *, const float *, const int *,
             const float *, const int *, const float *, float *, const int *, size_t, size_t);
void dsyr2k_(const char *, const char *, const int *, const int *, const double *, const double *,
             const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);

enum { N = 128 };
static const int order = N;
static const double one = 1;
static double h[N * N], o[N * N];
static int wrong;

static void tell(int right, const char *what)
{
    printf("%s %s\n", right ? "right" : "wrong", what);
    wrong |= !right;
}

static void *room(size_t bytes)
{
    void *at = calloc(bytes, 1);
    if (!at) exit(100);
    return at;
}

/* h = x times the identity. */
static void diagonal(double x)
{
    for (int i = 0; i < N * N; i++) h[i] = i % (N + 1) ? 0 : x;
}

static double *on_device(void)
{
    unsigned long long at;
    if (device_alloc(&at, sizeof h)) exit(101);
    device_copy_to(at, h, sizeof h);
    return (double *)(uintptr_t)at;
}

/* Element (i, i) of what is there. */
static double found(const double *at, int i)
{
    device_copy_from(o, (uintptr_t)at, sizeof o);
    return o[i * (N + 1)];
}

/* So many exchanges that one launch cannot make all. */
static void transposed(int n)
{
    const int nrhs = 1;
    int info = -1, right = 1, *ipiv = room(sizeof *ipiv * (size_t)n);
    double *a = room(sizeof *a * (size_t)n * (size_t)n), *b = room(sizeof *b * (size_t)n),
           *x = room(sizeof *x * (size_t)n);
    for (int i = 0; i < n; i++) {
        a[(size_t)i * (size_t)(n + 1)] = 1;
        b[i] = x[i] = i + 1;
        ipiv[i] = i + 1 + i * 7 % (n - i);
    }
    for (int i = n - 1; i >= 0; i--) {
        const double kept = x[i];
        x[i] = x[ipiv[i] - 1];
        x[ipiv[i] - 1] = kept;
    }
    dgetrs_("T", &n, &nrhs, a, &n, ipiv, b, &n, &info, 1);
    for (int i = 0; i < n; i++) right &= b[i] == x[i];
    tell(right && info == 0, "getrs of the transposed matrix");
}

/* One of the two products fails, of operands that the host can reach, too. */
static void both(int unused)
{
    int (*managed)(void *, size_t, unsigned) = device_function("cuMemAllocManaged");
    double *d;
    (void)unused;
    device_enter();
    if (managed(&d, 3 * sizeof h, 1)) exit(101);
    float *s = (float *)d;
    const float single = 1;
    for (int i = 0; i < 3 * N * N; i++) s[i] = 1;
    ssyr2k_("L", "N", &order, &order, &single, s, &order, s + N * N, &order, &single, s + 2 * N * N, &order,
            1, 1);
    tell(s[2 * N * N] == 2 * N + 1 && s[3 * N * N - 1] == 2 * N + 1, "ssyr2k");
    for (int i = 0; i < 3 * N * N; i++) d[i] = 1;
    dsyr2k_("L", "N", &order, &order, &one, d, &order, d + N * N, &order, &one, d + 2 * N * N, &order, 1, 1);
    tell(d[2 * N * N] == 2 * N + 1 && d[3 * N * N - 1] == 2 * N + 1, "dsyr2k");
}

/* Both products of SYR2K in one launch, so many tiles and so deep that those of one would share out their k.
   A and B are small integers, whose sums are exact. */
static int entry_of(int i, int p, int b) { return (7 * i + 3 * p + 5 * b) % 5 - 2; }
static void joined(int n)
{
    enum { K = 2064 };
    const int k = K, some = n / 7;
    const size_t of_c = sizeof(double) * (size_t)n * (size_t)n, of_a = sizeof(double) * (size_t)n * K;
    double *a = room(of_a), *b = room(of_a), *c = room(of_c);
    unsigned long long there[3];
    for (int i = 0; i < n * k; i++) {
        a[i] = entry_of(i % n, i / n, 0);
        b[i] = entry_of(i % n, i / n, 1);
    }
    device_enter();
    if (device_alloc(&there[0], of_a) || device_alloc(&there[1], of_a) || device_alloc(&there[2], of_c))
        exit(101);
    device_copy_to(there[0], a, of_a);
    device_copy_to(there[1], b, of_a);
    device_copy_to(there[2], c, of_c);
    dsyr2k_("U", "N", &n, &k, &one, (double *)(uintptr_t)there[0], &n, (double *)(uintptr_t)there[1], &n,
            &one, (double *)(uintptr_t)there[2], &n, 1, 1);
    device_copy_from(c, there[2], of_c);
    int right = 1;
    for (int j = 0; j < n; j += some)
        for (int i = 0; i < n; i += some) {
            long sum = 0;
            for (int p = 0; p < k && i <= j; p++)
                sum += entry_of(i, p, 0) * entry_of(j, p, 1) + entry_of(i, p, 1) * entry_of(j, p, 0);
            right &= c[i + j * n] == (double)sum;
        }
    tell(right, "both products in one launch");
}

static int rows;

/* One column of B is longer than a ring, or than half of it. */
static void *solve_tall(void *right)
{
    const int few = 2;
    const float alpha = 1, a[] = { 2, 0, 0, 2 };
    const size_t all = (size_t)rows * (size_t)few;
    float *b = room(all * sizeof *b);
    for (size_t i = 0; i < all; i++) b[i] = (float)(i % 16);
    strsm_("R", "U", "N", "N", &rows, &few, &alpha, a, &few, b, &rows, 1, 1, 1, 1);
    for (size_t i = 0; i < all; i++) *(int *)right &= b[i] == (float)(i % 16) / 2;
    return right;
}

static void tall(int m)
{
    pthread_t thread[3];
    int right[3] = { 1, 1, 1 };
    rows = m;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, solve_tall, &right[i])) exit(100);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    tell(right[0] && right[1] && right[2], "trsm of long columns in three threads");
}

/* X comes home while something fails. */
static void refined(int nrhs)
{
    const size_t all = (size_t)N * (size_t)nrhs;
    double *b = room(all * sizeof *b), *x = room(all * sizeof *x), *work = room(all * sizeof *work);
    float *single = room((all + N * N) * sizeof *single);
    int info = -1, iter = -1, ipiv[N], right = 1;
    diagonal(2);
    for (size_t i = 0; i < all; i++) b[i] = (double)(i % 7);
    dsgesv_(&order, &nrhs, h, &order, ipiv, b, &order, x, &order, work, single, &iter, &info);
    for (size_t i = 0; i < all; i++) right &= x[i] == b[i] / 2;
    tell(right && info == 0, "dsgesv");
}

/* Two zero pivots. The factors come home while something fails. */
static void pivots(int n)
{
    int info = -1, *ipiv = room(sizeof *ipiv * (size_t)n);
    double *a = room(sizeof *a * (size_t)n * (size_t)n);
    for (int j = 1; j < n - 1; j++)
        for (int i = 0; i < n; i++) a[i + (size_t)j * (size_t)n] = (i == j) * 4 + (i * 7 + j * 3) % 5 * 0.01;
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    tell(info == 1, "INFO of two zero pivots");
}

static void nothing(int unused)
{
    const double zero = 0;
    (void)unused;
    device_enter();
    diagonal(4);
    double *a = on_device(), *b = on_device();
    dtrsm_("L", "L", "N", "N", &order, &order, &zero, a, &order, b, &order, 1, 1, 1, 1);
    tell(found(b, 5) == 0, "trsm, alpha 0");
    b = on_device();
    dtrmm_("R", "U", "T", "N", &order, &order, &zero, a, &order, b, &order, 1, 1, 1, 1);
    tell(found(b, 5) == 0, "trmm, alpha 0");
}

static void compute(void)
{
    int info = -1;
    diagonal(4);
    double *a = on_device(), *b = on_device();
    dtrsm_("L", "L", "N", "N", &order, &order, &one, a, &order, b, &order, 1, 1, 1, 1);
    tell(found(b, 5) == 1, "trsm");
    dpotrf_("L", &order, a, &order, &info, 1);
    tell(found(a, 5) == 2 && info == 0, "potrf");
    fflush(stdout);
}

static void device(int unused)
{
    (void)unused;
    device_enter();
    compute();
}

/* While the program ends. */
static void ending(int unused)
{
    device(unused);
    atexit(compute);
}

/* While another thread records a graph. */
static void graph(int unused)
{
    int relaxed = 2, (*exchange)(int *) = device_function("cuThreadExchangeStreamCaptureMode");
    (void)unused;
    unsigned long long a, b;
    device_enter();
    exchange(&relaxed);
    if (device_alloc(&a, sizeof h) || device_alloc(&b, sizeof h)) exit(101);
    exchange(&relaxed);
    dtrsm_("L", "L", "N", "N", &order, &order, &one, (double *)(uintptr_t)a, &order, (double *)(uintptr_t)b,
           &order, 1, 1, 1, 1);
    tell(1, "trsm beside a graph");
}

/* Work of the program on that GPU comes first. */
static void queued(int number)
{
    int (*retain)(void **, int) = device_function("cuDevicePrimaryCtxRetain");
    int (*enter)(void *) = device_function("cuCtxSetCurrent");
    int (*set)(unsigned long long, unsigned char, size_t, void *) = device_function("cuMemsetD8Async");
    int solved = 1, inverted = 1;
    void *context;
    device_enter();
    if (retain(&context, number) || enter(context)) exit(102);
    diagonal(1);
    double unit[N * N];
    memcpy(unit, h, sizeof h);
    for (int i = 0; i < N * N; i++) h[i] = 7;
    double *b = on_device();
    for (int i = 0; i < 20; i++) {
        int info = -1;
        device_copy_to((uintptr_t)b, h, sizeof h);
        set((uintptr_t)b, 0, sizeof h, NULL);
        dtrsm_("L", "L", "N", "N", &order, &order, &one, unit, &order, b, &order, 1, 1, 1, 1);
        solved &= found(b, 5) == 0;
        memset(o, 0, sizeof o);
        device_copy_to((uintptr_t)b, o, sizeof o);
        set((uintptr_t)b, 0x3f, sizeof h, NULL);
        dtrtri_("L", "N", &order, b, &order, &info, 1, 1);
        inverted &= info == 0;
    }
    tell(solved, "trsm behind the program's work");
    tell(inverted, "INFO of trtri behind the program's work");
}

/* TRSM with one column, which counts arrivals, on the device and behind calls that have counted others: from
   the left a triangle with twos on the diagonal and ones below it, from the right its transpose. */
static void column(int n)
{
    const size_t bytes = sizeof(double) * (size_t)n * (size_t)n;
    double *a = room(bytes), *b = room(sizeof *b * (size_t)n);
    unsigned long long there[2];
    const int unit = 1;
    int right = 1;
    device_enter();
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) a[i + (size_t)j * (size_t)n] = i == j ? 2 : 1;
    if (device_alloc(&there[0], bytes) || device_alloc(&there[1], sizeof *b * (size_t)n)) exit(101);
    device_copy_to(there[0], a, bytes);
    double *on_a = (double *)(uintptr_t)there[0], *on_b = (double *)(uintptr_t)there[1];
    for (int call = 0; call < 4; call++) {
        for (int i = 0; i < n; i++) b[i] = i + 2;      /* of ones */
        device_copy_to(there[1], b, sizeof *b * (size_t)n);
        if (call % 2) dtrsm_("R", "L", "T", "N", &unit, &n, &one, on_a, &n, on_b, &unit, 1, 1, 1, 1);
        else dtrsm_("L", "L", "N", "N", &n, &unit, &one, on_a, &n, on_b, &n, 1, 1, 1, 1);
        device_copy_from(b, there[1], sizeof *b * (size_t)n);
        for (int i = 0; i < n; i++) right &= b[i] == 1;
    }
    tell(right, "trsm of one column on the device");
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(int); } what[] = {
        { "transposed", transposed }, { "both", both },     { "tall", tall },     { "refined", refined },
        { "pivots", pivots },         { "nothing", nothing }, { "device", device }, { "ending", ending },
        { "graph", graph },           { "queued", queued },   { "joined", joined },
        { "column", column } };
    for (size_t i = 0; argc > 1 && i < sizeof what / sizeof *what; i++) {
        if (strcmp(what[i].name, argv[1])) continue;
        what[i].run(argc > 2 ? atoi(argv[2]) : 0);
        return wrong;
    }
    return 2;
}
