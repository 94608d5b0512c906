/* SPDX-License-Identifier: MIT */
/* A stand-in for libcublas.so.13 on the software libcuda, so that what the benches say to cuBLAS is tried
   where there is no GPU. Right, and slow: no rival, and nobody times it. */
#include <stdint.h>
#include <stdlib.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

/* The types of cuBLAS: their letter, C's type, that of sums. */
#define TYPES(DO)              \
    DO(S, float, double)       \
    DO(D, double, long double) \
    DO(C, float _Complex, double _Complex) DO(Z, double _Complex, long double _Complex)

static void *fetched(const void *device, size_t bytes)
{
    void *host = malloc(bytes + 1);
    if (!host || cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, bytes)) abort();
    return host;
}

/* An element of op(A) or op(B), which is conjugated if op is 2. */
#define ELEMENT(x, op) ((op) == 2 ? __real__(x) - __imag__(x) * 1.0i : (x))

/* C is fetched and sent home even if beta is 0: what lies between its columns is to stay. */
#define GEMM(letter, type, wide)                                                                             \
    EXPORT int cublas##letter##gemm_v2(void *handle, int ta, int tb, int m, int n, int k, const type *alpha, \
                                       const type *a, int lda, const type *b, int ldb, const type *beta,     \
                                       type *c, int ldc)                                                     \
    {                                                                                                        \
        const size_t bytes_c = sizeof(type) * ((size_t)ldc * (size_t)(n - 1) + (size_t)m);                   \
        const size_t steps_a = (size_t)((ta ? m : k) - 1), steps_b = (size_t)((tb ? k : n) - 1);             \
        type *x = fetched(a, sizeof(type) * ((size_t)lda * steps_a + (size_t)(ta ? k : m)));                 \
        type *y = fetched(b, sizeof(type) * ((size_t)ldb * steps_b + (size_t)(tb ? n : k)));                 \
        type *z = fetched(c, bytes_c);                                                                       \
        (void)handle;                                                                                        \
        for (size_t j = 0; j < (size_t)n; j++)                                                               \
            for (size_t i = 0; i < (size_t)m; i++) {                                                         \
                wide sum = 0;                                                                                \
                type *to = &z[i + j * (size_t)ldc];                                                          \
                for (size_t p = 0; p < (size_t)k; p++)                                                       \
                    sum += (wide)ELEMENT(x[ta ? p + i * (size_t)lda : i + p * (size_t)lda], ta)              \
                        * (wide)ELEMENT(y[tb ? j + p * (size_t)ldb : p + j * (size_t)ldb], tb);              \
                *to = (type)(*alpha * sum + (*beta == 0 ? 0 : *beta * (wide)*to));                           \
            }                                                                                                \
        int error = (int)cuMemcpyHtoD((CUdeviceptr)(uintptr_t)c, z, bytes_c);                                \
        free(x);                                                                                             \
        free(y);                                                                                             \
        free(z);                                                                                             \
        return error;                                                                                        \
    }
TYPES(GEMM)

/* SYRK, and HERK of complex types, with a real alpha and beta: on one triangle (uplo 0: the lower). */
#define RANK_K(name, type, wide, real, op_other)                                                         \
    EXPORT int cublas##name##_v2(void *handle, int uplo, int op, int n, int k, const real *alpha,        \
                                 const type *a, int lda, const real *beta, type *c, int ldc)             \
    {                                                                                                    \
        const size_t bytes_c = sizeof(type) * ((size_t)ldc * (size_t)(n - 1) + (size_t)n);               \
        const size_t steps = (size_t)((op ? n : k) - 1), down = (size_t)(op ? k : n), ld = (size_t)lda;  \
        const size_t row = op ? ld : 1, step = op ? 1 : ld;                                              \
        type *x = fetched(a, sizeof(type) * (ld * steps + down)), *z = fetched(c, bytes_c);              \
        (void)handle;                                                                                    \
        for (size_t j = 0; j < (size_t)n; j++)                                                           \
            for (size_t i = uplo ? 0 : j; i < (uplo ? j + 1 : (size_t)n); i++) {                         \
                wide sum = 0;                                                                            \
                type *to = &z[i + j * (size_t)ldc];                                                      \
                for (size_t p = 0; p < (size_t)k; p++)                                                   \
                    sum += (wide)ELEMENT(x[i * row + p * step], op)                                      \
                        * (wide)ELEMENT(x[j * row + p * step], op ? 0 : op_other);                       \
                *to = (type)(*alpha * sum + (*beta == 0 ? 0 : *beta * (wide)*to));                       \
            }                                                                                            \
        int error = (int)cuMemcpyHtoD((CUdeviceptr)(uintptr_t)c, z, bytes_c);                            \
        free(x);                                                                                         \
        free(z);                                                                                         \
        return error;                                                                                    \
    }
RANK_K(Ssyrk, float, double, float, 0)
RANK_K(Dsyrk, double, long double, double, 0)
RANK_K(Cherk, float _Complex, double _Complex, float, 2)
RANK_K(Zherk, double _Complex, long double _Complex, double, 2)

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

#define STRIDED(letter, type, wide)                                                                         \
    EXPORT int cublas##letter##gemmStridedBatched(                                                          \
        void *handle, int ta, int tb, int m, int n, int k, const type *alpha, const type *a, int lda,       \
        long long stride_a, const type *b, int ldb, long long stride_b, const type *beta, type *c, int ldc, \
        long long stride_c, int batch)                                                                      \
    {                                                                                                       \
        for (long long l = 0; l < batch; l++) {                                                             \
            int error = cublas##letter##gemm_v2(handle, ta, tb, m, n, k, alpha, a + l * stride_a, lda,      \
                                                b + l * stride_b, ldb, beta, c + l * stride_c, ldc);        \
            if (error) return error;                                                                        \
        }                                                                                                   \
        return 0;                                                                                           \
    }
TYPES(STRIDED)

#define BATCHED(letter, type, wide)                                                                  \
    EXPORT int cublas##letter##gemmBatched(void *handle, int ta, int tb, int m, int n, int k,        \
                                           const type *alpha, const type *const *a, int lda,         \
                                           const type *const *b, int ldb, const type *beta,          \
                                           type *const *c, int ldc, int batch)                       \
    {                                                                                                \
        const size_t bytes = sizeof(type *) * (size_t)batch;                                         \
        type **lists = malloc(3 * bytes);                                                            \
        const void *const tables[3] = { a, b, c };                                                   \
        int error = lists ? 0 : 1;                                                                   \
        for (int x = 0; x < 3 && !error; x++)                                                        \
            error = (int)cuMemcpyDtoH(lists + x * batch, (CUdeviceptr)(uintptr_t)tables[x], bytes);  \
        for (int l = 0; l < batch && !error; l++)                                                    \
            error = cublas##letter##gemm_v2(handle, ta, tb, m, n, k, alpha, lists[l], lda,           \
                                            lists[batch + l], ldb, beta, lists[2 * batch + l], ldc); \
        free(lists);                                                                                 \
        return error;                                                                                \
    }
TYPES(BATCHED)
