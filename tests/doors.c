/* SPDX-License-Identifier: MIT */
/* See doors.h. The prototypes are the library's own. tests/programs/extensions.c has others. */
#include "tests/doors.h"

#include "src/host/gemm_abi.h"

enum { ROW = 101, COLUMN = 102 };

void sgemm_(GPB_F77_GEMM_PARAMS(float, int));
void sgemm_64_(GPB_F77_GEMM_PARAMS(float, int64_t));
void cblas_sgemm(GPB_CBLAS_GEMM_PARAMS(float, float, int));
void cblas_sgemm64_(GPB_CBLAS_GEMM_PARAMS(float, float, int64_t));
void sgemmtr_(GPB_F77_GEMMTR_PARAMS(float, int));
void cblas_sgemmtr(GPB_CBLAS_GEMMTR_PARAMS(float, float, int));
void cblas_sgemm_batch(GPB_CBLAS_GEMM_BATCH_PARAMS(float, int));
void sgemm_batch_strided_(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(float, int));
void cblas_sgemm_batch_strided(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(float, float, int));

static int trans(char letter) { return letter == 'N' ? 111 : letter == 'T' ? 112 : 113; }

/* The call's fields as the doors take them. */
typedef struct plain {
    char transa, transb, uplo;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    float alpha, beta;
    const float *a, *b;
    float *c;
} plain;

static plain plain_of(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B], *c = &g->x[GPB_C];
    return (plain){ a->trans, b->trans, c->uplo, g->m, g->n, g->k, a->ld, b->ld, c->ld, a->stride, b->stride,
                    c->stride, g->batch, (float)g->alpha, (float)g->beta, a->base, b->base,
                    gpb_call_member(g, GPB_C, 0) };
}

static void through_f77(const gpb_call *g)
{
    const plain p = plain_of(g);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    sgemm_(&p.transa, &p.transb, &m, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

static void through_f77_64(const gpb_call *g)
{
    const plain p = plain_of(g);
    sgemm_64_(&p.transa, &p.transb, &p.m, &p.n, &p.k, &p.alpha, p.a, &p.lda, p.b, &p.ldb, &p.beta, p.c,
              &p.ldc);
}

static void through_columns(const gpb_call *g)
{
    const plain p = plain_of(g);
    cblas_sgemm(COLUMN, trans(p.transa), trans(p.transb), (int)p.m, (int)p.n, (int)p.k, p.alpha, p.a,
                (int)p.lda, p.b, (int)p.ldb, p.beta, p.c, (int)p.ldc);
}

/* Row-major with the operands exchanged is the same product. */
static void through_rows(const gpb_call *g)
{
    const plain p = plain_of(g);
    cblas_sgemm(ROW, trans(p.transb), trans(p.transa), (int)p.n, (int)p.m, (int)p.k, p.alpha, p.b, (int)p.ldb,
                p.a, (int)p.lda, p.beta, p.c, (int)p.ldc);
}

static void through_rows_64(const gpb_call *g)
{
    const plain p = plain_of(g);
    cblas_sgemm64_(ROW, trans(p.transb), trans(p.transa), p.n, p.m, p.k, p.alpha, p.b, p.ldb, p.a, p.lda,
                   p.beta, p.c, p.ldc);
}

static void through_triangle(const gpb_call *g)
{
    const plain p = plain_of(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    sgemmtr_(&p.uplo, &p.transa, &p.transb, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

static void through_triangle_rows(const gpb_call *g)
{
    const plain p = plain_of(g);
    cblas_sgemmtr(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), trans(p.transa), (int)p.n, (int)p.k,
                  p.alpha, p.b, (int)p.ldb, p.a, (int)p.lda, p.beta, p.c, (int)p.ldc);
}

static void through_strided(const gpb_call *g)
{
    const plain p = plain_of(g);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc,
        count = (int)p.batch;
    const int sa = (int)p.stride_a, sb = (int)p.stride_b, sc = (int)p.stride_c;
    sgemm_batch_strided_(&p.transa, &p.transb, &m, &n, &k, &p.alpha, p.a, &lda, &sa, p.b, &ldb, &sb, &p.beta,
                         p.c, &ldc, &sc, &count);
}

static void through_strided_rows(const gpb_call *g)
{
    const plain p = plain_of(g);
    cblas_sgemm_batch_strided(ROW, trans(p.transb), trans(p.transa), (int)p.n, (int)p.m, (int)p.k, p.alpha,
                              p.b, (int)p.ldb, (int)p.stride_b, p.a, (int)p.lda, (int)p.stride_a, p.beta,
                              p.c, (int)p.ldc, (int)p.stride_c, (int)p.batch);
}

/* The members in two groups of the same shape, or in one. */
static void through_groups(const gpb_call *g)
{
    const plain p = plain_of(g);
    const float *a[GPB_TEST_MEMBERS], *b[GPB_TEST_MEMBERS];
    float *c[GPB_TEST_MEMBERS];
    const int first = (int)p.batch / 2, sizes[2] = { first ? first : (int)p.batch, (int)p.batch - first };
    int ta[2], tb[2], m[2], n[2], k[2], lda[2], ldb[2], ldc[2];
    float alpha[2], beta[2];
    for (int i = 0; i < 2; i++) {
        ta[i] = trans(p.transa);
        tb[i] = trans(p.transb);
        m[i] = (int)p.m;
        n[i] = (int)p.n;
        k[i] = (int)p.k;
        lda[i] = (int)p.lda;
        ldb[i] = (int)p.ldb;
        ldc[i] = (int)p.ldc;
        alpha[i] = p.alpha;
        beta[i] = p.beta;
    }
    for (int64_t l = 0; l < p.batch; l++) {
        a[l] = p.a + l * p.stride_a;
        b[l] = p.b + l * p.stride_b;
        c[l] = p.c + l * p.stride_c;
    }
    cblas_sgemm_batch(COLUMN, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, first ? 2 : 1, sizes);
}

const gpb_test_door gpb_test_doors[GPB_TEST_DOORS] = {
    { "sgemm_", through_f77, GPB_TEST_gemm, true },
    { "sgemm_64_", through_f77_64, GPB_TEST_gemm, false },
    { "cblas_sgemm, columns", through_columns, GPB_TEST_gemm, false },
    { "cblas_sgemm, rows", through_rows, GPB_TEST_gemm, false },
    { "cblas_sgemm64_, rows", through_rows_64, GPB_TEST_gemm, false },
    { "sgemmtr_", through_triangle, GPB_TEST_gemmtr, false },
    { "cblas_sgemmtr, rows", through_triangle_rows, GPB_TEST_gemmtr, false },
    { "sgemm_batch_strided_", through_strided, GPB_TEST_gemm_batch_strided, false },
    { "cblas_sgemm_batch_strided, rows", through_strided_rows, GPB_TEST_gemm_batch_strided, false },
    { "cblas_sgemm_batch", through_groups, GPB_TEST_gemm_batch, false } };
