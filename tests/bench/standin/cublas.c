/* SPDX-License-Identifier: MIT */
/* A stand-in for libcublas.so.13 on the software libcuda, so that what the benches say to cuBLAS is tried
   where there is no GPU. Right, and slow: no rival, and nobody times it. */
#include <stdint.h>
#include <stdlib.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

static float *fetched(const float *device, size_t floats)
{
    float *host = malloc(4 * floats + 1);
    if (!host || cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, 4 * floats)) abort();
    return host;
}

/* C is fetched and sent home even if beta is 0: what lies between its columns is to stay. */
EXPORT int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
                          const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                          int ldc)
{
    const size_t floats_c = (size_t)ldc * (size_t)(n - 1) + (size_t)m;
    float *x = fetched(a, (size_t)lda * (size_t)((ta ? m : k) - 1) + (size_t)(ta ? k : m));
    float *y = fetched(b, (size_t)ldb * (size_t)((tb ? k : n) - 1) + (size_t)(tb ? n : k));
    float *z = fetched(c, floats_c);
    (void)handle;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            float *to = &z[i + (size_t)j * (size_t)ldc];
            for (int p = 0; p < k; p++)
                sum += (double)x[ta ? p + (size_t)i * (size_t)lda : i + (size_t)p * (size_t)lda]
                    * (double)y[tb ? j + (size_t)p * (size_t)ldb : p + (size_t)j * (size_t)ldb];
            *to = (float)((double)*alpha * sum + (*beta == 0 ? 0 : (double)*beta * (double)*to));
        }
    int error = (int)cuMemcpyHtoD((CUdeviceptr)(uintptr_t)c, z, 4 * floats_c);
    free(x);
    free(y);
    free(z);
    return error;
}

EXPORT int cublasCreate_v2(void **handle)
{
    *handle = handle;
    return 0;
}

EXPORT int cublasSetMathMode(void *handle, int mode)
{
    (void)handle, (void)mode;
    return 0;
}

EXPORT int cublasSgemmStridedBatched(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
                                     const float *a, int lda, long long stride_a, const float *b, int ldb,
                                     long long stride_b, const float *beta, float *c, int ldc,
                                     long long stride_c, int batch)
{
    for (long long l = 0; l < batch; l++) {
        int error = cublasSgemm_v2(handle, ta, tb, m, n, k, alpha, a + l * stride_a, lda, b + l * stride_b,
                                   ldb, beta, c + l * stride_c, ldc);
        if (error) return error;
    }
    return 0;
}

EXPORT int cublasSgemmBatched(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
                              const float *const *a, int lda, const float *const *b, int ldb,
                              const float *beta, float *const *c, int ldc, int batch)
{
    const size_t bytes = sizeof(float *) * (size_t)batch;
    float **lists = malloc(3 * bytes);
    const void *const tables[3] = { a, b, c };
    int error = lists ? 0 : 1;
    for (int x = 0; x < 3 && !error; x++)
        error = (int)cuMemcpyDtoH(lists + x * batch, (CUdeviceptr)(uintptr_t)tables[x], bytes);
    for (int l = 0; l < batch && !error; l++)
        error = cublasSgemm_v2(handle, ta, tb, m, n, k, alpha, lists[l], lda, lists[batch + l], ldb, beta,
                               lists[2 * batch + l], ldc);
    free(lists);
    return error;
}
