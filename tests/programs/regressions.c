/* SPDX-License-Identifier: MIT */
/* What once was wrong: complex scalars that are no real numbers; a batch whose second group is illegal; C
   on the GPU or in both memories when a driver call fails; pinned operands, whose kernels waited for all
   of them; operands in strips of several kinds of memory. Usage: regressions scalars | device | mixed |
   pinned | places. Exits with the number of wrong results. All but the first need libcuda. */
#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void cgemm_(const char *, const char *, const int *, const int *, const int *, const void *, const void *,
            const int *, const void *, const int *, const void *, void *, const int *);
void cblas_sgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const float *,
                       const float **, const int *, const float **, const int *, const float *, float **,
                       const int *, int, const int *);

/* libcuda's own names, so that no CUDA header is needed here (cuda.h maps cuMemAlloc to cuMemAlloc_v2). */
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxPushCurrent_v2(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);

static int scalars(void)
{
    const int one = 1, zero = 0;
    int wrong = 0;
    for (int form = 0; form < 4; form++) {
        const float complex alpha = form & 1 ? 0 : 1, beta = form & 2 ? I : 1 + 2 * I, a = 1, b = 1;
        const int *k = form & 1 ? &one : &zero;
        float complex c = 3, right = 3 * beta;
        cgemm_("N", "N", &one, &one, k, &alpha, &a, &one, &b, &one, &beta, &c, &one);
        wrong += c != right;
    }
    /* The second group is illegal, so nothing of the first one is written. */
    const int trans[] = { 111, 111 }, m[] = { 2, 2 }, n[] = { 2, -2 }, size[] = { 1, 1 };
    const float alphas[] = { 1, 1 }, betas[] = { 0, 0 };
    float x[4] = { 1, 1, 1, 1 }, y[4] = { 9, 9, 9, 9 }, z[4] = { 9, 9, 9, 9 };
    const float *xs[] = { x, x };
    float *ys[] = { y, z };
    cblas_sgemm_batch(102, trans, trans, m, n, m, alphas, xs, m, xs, m, betas, ys, m, 2, size);
    return wrong + (y[0] != 9) + (z[0] != 9);
}

static void start(void)
{
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxPushCurrent_v2(context)) exit(99);
}

/* C on the GPU, in panels, beta = 1. The numbers are small integers, so every order of sums is exact. */
static int device(void)
{
    const int m = 700, n = 600, k = 1100;
    const float alpha = 1, beta = 1;
    float *a = malloc(4u * m * k), *b = malloc(4u * k * n), *c = malloc(4u * m * n),
          *out = malloc(4u * m * n);
    unsigned long long at = 0;
    int wrong = 0;
    for (int i = 0; i < m * k; i++) a[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < k * n; i++) b[i] = (float)(i * 5 % 7 - 3);
    for (int i = 0; i < m * n; i++) c[i] = (float)(i % 9);
    start();
    if (cuMemAlloc_v2(&at, 4u * m * n) || cuMemcpyHtoD_v2(at, c, 4u * m * n)) return 98;
    sgemm_("N", "N", &m, &n, &k, &alpha, a, &m, b, &k, &beta, (float *)(uintptr_t)at, &m);
    if (cuMemcpyDtoH_v2(out, at, 4u * m * n)) return 97;
    for (int j = 0; j < n; j += 37)
        for (int i = 0; i < m; i++) {
            double sum = c[i + j * m];
            for (int p = 0; p < k; p++) sum += (double)a[i + p * m] * b[p + j * k];
            wrong += out[i + j * m] != (float)sum;
        }
    return wrong > 90 ? 90 : wrong;
}

/* A batch of eight whose last C is on the GPU, the others in host memory. */
static int mixed(void)
{
    enum { N = 64, COUNT = 8 };
    const int n = N, trans = 111, count = COUNT;
    const float one = 1;
    static float a[N * N], home[COUNT][N * N];
    const float *as[COUNT];
    float *cs[COUNT];
    unsigned long long at = 0;
    int wrong = 0;
    start();
    for (int i = 0; i < N * N; i++) a[i] = 1;
    for (int l = 0; l < COUNT; l++) {
        for (int i = 0; i < N * N; i++) home[l][i] = 5;
        as[l] = a;
        cs[l] = home[l];
    }
    if (cuMemAlloc_v2(&at, sizeof home[0]) || cuMemcpyHtoD_v2(at, home[COUNT - 1], sizeof home[0])) return 98;
    cs[COUNT - 1] = (float *)(uintptr_t)at;
    cblas_sgemm_batch(102, &trans, &trans, &n, &n, &n, &one, as, &n, as, &n, &one, cs, &n, 1, &count);
    if (cuMemcpyDtoH_v2(home[COUNT - 1], at, sizeof home[0])) return 97;
    for (int l = 0; l < COUNT; l++)
        for (int i = 0; i < N * N; i++) wrong += home[l][i] != N + 5;
    return wrong > 90 ? 90 : wrong;
}

/* All operands are pinned, in several strips. */
static int pinned(void)
{
    const int n = 2048, k = 256;
    const float alpha = 1, beta = 0;
    void *at;
    int wrong = 0;
    start();
    if (cuMemHostAlloc(&at, 4u * (2 * n * k + n * n), 0)) exit(99);
    float *a = at, *b = a + n * k, *c = b + n * k;
    for (int i = 0; i < n * k; i++) {
        a[i] = (float)(i * 7 % 11 - 5);
        b[i] = (float)(i * 5 % 13 - 6);
    }
    sgemm_("N", "N", &n, &n, &k, &alpha, a, &n, b, &k, &beta, c, &n);
    for (int i = 0; i < n; i += 101)
        for (int j = 0; j < n; j += 97) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += a[i + l * n] * b[l + j * k];
            wrong += c[i + j * n] != sum;
        }
    return wrong;
}

enum memory { ORDINARY, PINNED, DEVICE, MEMORIES };

/* New numbers each time, because those of the call before may still be where this call's are to come. */
static void fill(float *in[MEMORIES], int count, int number)
{
    for (int i = 0; i < count; i++) in[ORDINARY][i] = (float)(i * 7 % 11 % (5 + number) - 3);
    memcpy(in[PINNED], in[ORDINARY], 4u * (size_t)count);
    if (cuMemcpyHtoD_v2((uintptr_t)in[DEVICE], in[PINNED], 4u * (size_t)count)) exit(99);
}

/* A and B each in ordinary, pinned or device memory, C in ordinary memory, in several strips. In each of
   the nine cases another copy is queued first. */
static int places(void)
{
    const int n = 1024, k = 64;
    const float alpha = 1, beta = 0;
    float *in[2][MEMORIES], *c = malloc(4u * (size_t)(n * n));
    int wrong = 0;
    start();
    for (int x = 0; x < 2; x++) {
        unsigned long long device;
        void *pinned;
        in[x][ORDINARY] = malloc(4u * (size_t)(n * k));
        if (!c || !in[x][ORDINARY] || cuMemHostAlloc(&pinned, 4u * (size_t)(n * k), 0)
            || cuMemAlloc_v2(&device, 4u * (size_t)(n * k)))
            exit(99);
        in[x][PINNED] = pinned;
        in[x][DEVICE] = (float *)(uintptr_t)device;
    }
    for (int which = 0; which < MEMORIES * MEMORIES; which++) {
        const int of_a = which / MEMORIES, of_b = which % MEMORIES;
        int bad = 0;
        fill(in[0], n * k, which);
        fill(in[1], n * k, which + 1);
        sgemm_("N", "N", &n, &n, &k, &alpha, in[0][of_a], &n, in[1][of_b], &k, &beta, c, &n);
        for (int i = 0; i < n; i += 31)
            for (int j = 0; j < n; j += 7) {
                float sum = 0;
                for (int l = 0; l < k; l++) sum += in[0][ORDINARY][i + l * n] * in[1][ORDINARY][l + j * k];
                bad |= c[i + j * n] != sum;
            }
        if (bad)
            fprintf(stderr, "wrong: A %d, B %d (0: ordinary, 1: pinned, 2: device memory)\n", of_a, of_b);
        wrong += bad;
    }
    return wrong;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    return strcmp(what, "device") == 0 ? device() : strcmp(what, "mixed") == 0 ? mixed()
         : strcmp(what, "pinned") == 0 ? pinned() : strcmp(what, "places") == 0 ? places() : scalars();
}
