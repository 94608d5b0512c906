/* SPDX-License-Identifier: MIT */
/* few_marked ROWS: a product on the device, 2048 x 2048 x 128, of which so many rows of blocks of op(A) have an element that FP16 slices do not
   reach. Says whether C is right; which kernels computed it the software libcuda tells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                   const float *, const int *, const float *, float *, const int *);

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxPushCurrent_v2(void *), cuMemAlloc_v2(unsigned long long *, size_t);
extern int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t), cuMemcpyDtoH_v2(void *, unsigned long long, size_t);

enum { N = 2048, K = 128, BLOCK = 128 };
static float a[N * K], b[N * K], c[N * N];

static float *upload(const float *x, size_t bytes)
{
    unsigned long long at = 0;
    if (cuMemAlloc_v2(&at, bytes) || cuMemcpyHtoD_v2(at, x, bytes)) exit(2);
    return (float *)(size_t)at;
}

int main(int count, char **arguments)
{
    const int marked = count > 1 ? atoi(arguments[1]) : 0, n = N, k = K;
    const float one = 1, zero = 0;
    void *context;
    double worst = 0;
    for (int x = 0; x < N * K; x++) a[x] = (float)drand48() - 0.5f, b[x] = (float)drand48() + 0.1f;
    for (int x = 0; x < marked; x++) a[(x * BLOCK + 5) * K + 3] *= 0x1p-45f;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxPushCurrent_v2(context)) return 2;
    float *const da = upload(a, sizeof a), *const db = upload(b, sizeof b), *const dc = upload(c, sizeof c);
    sgemm_("T", "N", &n, &n, &k, &one, da, &k, db, &k, &zero, dc, &n);
    if (cuMemcpyDtoH_v2(c, (unsigned long long)(size_t)dc, sizeof c)) return 2;
    for (int i = 0; i < N; i += 5)
        for (int j = 0; j < N; j += 97) {
            double sum = 0, weight = 0;
            for (int p = 0; p < K; p++) sum += (double)a[i * K + p] * b[j * K + p], weight += fabs((double)a[i * K + p] * b[j * K + p]);
            worst = fmax(worst, fabs(c[i + (size_t)j * N] - sum) / weight);
        }
    puts(worst <= (K + 4) * 0x1p-24 ? "right" : "WRONG");
    return 0;
}
