/* SPDX-License-Identifier: MIT */
/* See doors.h. Prototypes by the types of tests/programs: CBLAS's enumerations as int. */
#include "tests/doors.h"

enum { ROW = 101, COLUMN = 102 };

#define F77(name, INT)                                                                                                              \
    void name(const char *, const char *, const INT *, const INT *, const INT *, const float *, const float *, const INT *, const float *, \
              const INT *, const float *, float *, const INT *);
#define CBLAS(name, INT) void name(int, int, int, INT, INT, INT, float, const float *, INT, const float *, INT, float, float *, INT);
F77(sgemm_, int) F77(sgemm_64_, int64_t) CBLAS(cblas_sgemm, int) CBLAS(cblas_sgemm64_, int64_t)
void sgemmtr_(const char *, const char *, const char *, const int *, const int *, const float *, const float *, const int *,
    const float *, const int *,
              const float *, float *, const int *);
void cblas_sgemmtr(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void cblas_sgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const float *, const float **, const int *,
                       const float **, const int *, const float *, float **, const int *, int, const int *);
void sgemm_batch_strided_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
    const int *,
                          const float *, const int *, const int *, const float *, float *, const int *, const int *, const int *);
void cblas_sgemm_batch_strided(int, int, int, int, int, int, float, const float *, int, int, const float *, int, int, float, float *,
    int, int, int);

static int trans(char letter) { return letter == 'N' ? 111 : letter == 'T' ? 112 : 113; }

static void through_f77(const gpb_call *g)
{
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_(&g->transa, &g->transb, &m, &n, &k, &alpha, g->a, &lda, g->b, &ldb, &beta, g->c, &ldc);
}

static void through_f77_64(const gpb_call *g)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_64_(&g->transa, &g->transb, &g->m, &g->n, &g->k, &alpha, g->a, &g->lda, g->b, &g->ldb, &beta, g->c, &g->ldc);
}

static void through_columns(const gpb_call *g)
{
    cblas_sgemm(COLUMN, trans(g->transa), trans(g->transb), (int)g->m, (int)g->n, (int)g->k, (float)g->alpha, g->a, (int)g->lda, g->b,
        (int)g->ldb,
                (float)g->beta, g->c, (int)g->ldc);
}

/* Row-major with the operands exchanged is the same product. */
static void through_rows(const gpb_call *g)
{
    cblas_sgemm(ROW, trans(g->transb), trans(g->transa), (int)g->n, (int)g->m, (int)g->k, (float)g->alpha, g->b, (int)g->ldb, g->a,
        (int)g->lda,
                (float)g->beta, g->c, (int)g->ldc);
}

static void through_rows_64(const gpb_call *g)
{
    cblas_sgemm64_(ROW, trans(g->transb), trans(g->transa), g->n, g->m, g->k, (float)g->alpha, g->b, g->ldb, g->a, g->lda,
        (float)g->beta, g->c, g->ldc);
}

static void through_triangle(const gpb_call *g)
{
    const int n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemmtr_(&g->uplo, &g->transa, &g->transb, &n, &k, &alpha, g->a, &lda, g->b, &ldb, &beta, g->c, &ldc);
}

static void through_triangle_rows(const gpb_call *g)
{
    cblas_sgemmtr(ROW, g->uplo == 'U' ? 122 : 121, trans(g->transb), trans(g->transa), (int)g->n, (int)g->k, (float)g->alpha, g->b,
        (int)g->ldb, g->a,
                  (int)g->lda, (float)g->beta, g->c, (int)g->ldc);
}

static void through_strided(const gpb_call *g)
{
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc, count = (int)g->batch;
    const int sa = (int)g->stride_a, sb = (int)g->stride_b, sc = (int)g->stride_c;
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    sgemm_batch_strided_(&g->transa, &g->transb, &m, &n, &k, &alpha, g->a, &lda, &sa, g->b, &ldb, &sb, &beta, g->c, &ldc, &sc, &count);
}

static void through_strided_rows(const gpb_call *g)
{
    cblas_sgemm_batch_strided(ROW, trans(g->transb), trans(g->transa), (int)g->n, (int)g->m, (int)g->k, (float)g->alpha, g->b, (int)g->ldb,
                              (int)g->stride_b, g->a, (int)g->lda, (int)g->stride_a, (float)g->beta, g->c, (int)g->ldc, (int)g->stride_c,
                                  (int)g->batch);
}

/* The members in two groups of the same shape, or in one. */
static void through_groups(const gpb_call *g)
{
    const float *a[GPB_TEST_MEMBERS], *b[GPB_TEST_MEMBERS];
    float *c[GPB_TEST_MEMBERS];
    const int first = (int)g->batch / 2, sizes[2] = { first ? first : (int)g->batch, (int)g->batch - first };
    int ta[2], tb[2], m[2], n[2], k[2], lda[2], ldb[2], ldc[2];
    float alpha[2], beta[2];
    for (int i = 0; i < 2; i++) {
        ta[i] = trans(g->transa), tb[i] = trans(g->transb), m[i] = (int)g->m, n[i] = (int)g->n, k[i] = (int)g->k;
        lda[i] = (int)g->lda, ldb[i] = (int)g->ldb, ldc[i] = (int)g->ldc, alpha[i] = (float)g->alpha, beta[i] = (float)g->beta;
    }
    for (int64_t l = 0; l < g->batch; l++) {
        a[l] = (const float *)g->a + l * g->stride_a, b[l] = (const float *)g->b + l * g->stride_b;
        c[l] = (float *)g->c + l * g->stride_c;
    }
    cblas_sgemm_batch(COLUMN, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, first ? 2 : 1, sizes);
}

const gpb_test_door gpb_test_doors[GPB_TEST_DOORS] = {
    { "sgemm_", through_f77, false, false, true },
    { "sgemm_64_", through_f77_64, false, false, false },
    { "cblas_sgemm, columns", through_columns, false, false, false },
    { "cblas_sgemm, rows", through_rows, false, false, false },
    { "cblas_sgemm64_, rows", through_rows_64, false, false, false },
    { "sgemmtr_", through_triangle, false, true, false },
    { "cblas_sgemmtr, rows", through_triangle_rows, false, true, false },
    { "sgemm_batch_strided_", through_strided, true, false, false },
    { "cblas_sgemm_batch_strided, rows", through_strided_rows, true, false, false },
    { "cblas_sgemm_batch", through_groups, true, false, false } };
