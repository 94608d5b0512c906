/* SPDX-License-Identifier: MIT */
/* A host BLAS that tells with how many threads it would multiply, and what it is told to use. PARALLEL: 1,
   threads of its own, or 2, those of OpenMP, as OpenBLAS says it. CHANGES: the program sets another number
   while it is lowered. GEMM, REAL: sgemm_ and float, or dgemm_ and double. */
#include <stdio.h>

static int threads = 64;

int openblas_get_num_threads(void) { return threads; }
int openblas_get_parallel(void) { return PARALLEL; }
void openblas_set_num_threads(int count) { fprintf(stderr, "host: set %d\n", threads = count); }

int isamax_(const int *n, const float *x, const int *incx)
{
    int at = 0;
    for (int i = 1; i < *n; i++)
        if (x[i * *incx] > x[at * *incx]) at = i;
    return *n < 1 ? 0 : at + 1;
}

/* Systems of one equation. */
void dtrsm_(const char *side, const char *uplo, const char *transa, const char *diag, const int *m,
            const int *n, const double *alpha, const double *a, const int *lda, double *b, const int *ldb)
{
    (void)side, (void)uplo, (void)transa, (void)diag, (void)m, (void)n, (void)lda, (void)ldb;
    fprintf(stderr, "host: solves with %d\n", threads);
    *b *= *alpha / *a;
}

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b, const int *ldb,
            int *info)
{
    (void)n, (void)nrhs, (void)lda, (void)ldb;
    fprintf(stderr, "host: factors with %d\n", threads);
    *ipiv = 1;
    *info = 0;
    *b /= *a;
}

/* alpha = 1, beta = 0, nothing transposed. */
void GEMM(const char *transa, const char *transb, const int *m, const int *n, const int *k, const REAL *alpha,
          const REAL *a, const int *lda, const REAL *b, const int *ldb, const REAL *beta, REAL *c,
          const int *ldc)
{
    static int calls;
    (void)transa, (void)transb, (void)alpha, (void)beta;
    fprintf(stderr, "host: multiplies with %d\n", threads);
    if (calls++ > 0 && threads == 63 && CHANGES) threads = 5;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            REAL sum = 0;
            for (int l = 0; l < *k; l++) sum += a[i + l * *lda] * b[l + j * *ldb];
            c[i + j * *ldc] = sum;
        }
}
