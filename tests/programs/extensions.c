/* SPDX-License-Identifier: MIT */
/* The GEMM names beyond netlib 3.11's: gemmtr and gemmt, the batches, 64-bit integers, and the names
   inside the NumPy and SciPy wheels. Linked with -lgpublas alone, because no host BLAS of Debian has them
   all. Prints a line a name and exits with 1 if any was wrong. */
#include "matrix.h"

#define FORTRAN_GEMM(name, integer)                                                                         \
    void name(const char *, const char *, const integer *, const integer *, const integer *, const float *, \
              const float *, const integer *, const float *, const integer *, const float *, float *,       \
              const integer *);
#define CBLAS_GEMM(name, integer)                                                                     \
    void name(int, int, int, integer, integer, integer, float, const float *, integer, const float *, \
              integer, float, float *, integer);
FORTRAN_GEMM(sgemm_64_, int64_t)
FORTRAN_GEMM(scipy_sgemm_64_, int64_t)
FORTRAN_GEMM(scipy_sgemm_, int)
CBLAS_GEMM(cblas_sgemm_64, int64_t)
CBLAS_GEMM(cblas_sgemm64_, int64_t)
CBLAS_GEMM(scipy_cblas_sgemm64_, int64_t)
CBLAS_GEMM(scipy_cblas_sgemm, int)

typedef void fortran_gemmtr(const char *, const char *, const char *, const int *, const int *, const float *,
                            const float *, const int *, const float *, const int *, const float *, float *,
                            const int *);
typedef void cblas_gemmtr(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                          float *, int);
fortran_gemmtr sgemmtr_, sgemmt_;
cblas_gemmtr cblas_sgemmtr, cblas_sgemmt;

void sgemm_batch_(const char *, const char *, const int *, const int *, const int *, const float *,
                  const float **, const int *, const float **, const int *, const float *, float **,
                  const int *, const int *, const int *);
void cblas_sgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const float *,
                       const float **, const int *, const float **, const int *, const float *, float **,
                       const int *, int, const int *);
void sgemm_batch_strided_(const char *, const char *, const int *, const int *, const int *, const float *,
                          const float *, const int *, const int *, const float *, const int *, const int *,
                          const float *, float *, const int *, const int *, const int *);
void cblas_sgemm_batch_strided(int, int, int, int, int, int, float, const float *, int, int, const float *,
                               int, int, float, float *, int, int, int);

static int wrong, reported;

static void tell(bool right, const char *name)
{
    printf("%s %s\n", right ? "right" : "WRONG", name);
    wrong += !right;
}

void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    reported = *info;
}

/* ---- 64-bit integers, and the wheels' names */

enum { M = 61, N = 47, K = 83, LDA = 90, LDB = 95, LDC = 70 };

static const product shape = { 'N', 'T', M, N, K, 1.5f, NULL, LDA, NULL, LDB, 0.5f, NULL, LDC, 'G' };

#define CALL_FORTRAN(name, integer)                                                                \
    static void call_##name(const product *p)                                                      \
    {                                                                                              \
        integer m = p->m, n = p->n, k = p->k, lda = p->lda, ldb = p->ldb, ldc = p->ldc;            \
        name(&p->ta, &p->tb, &m, &n, &k, &p->alpha, p->a, &lda, p->b, &ldb, &p->beta, p->c, &ldc); \
    }
#define CALL_CBLAS(name)                                                                                  \
    static void call_##name(const product *p)                                                             \
    {                                                                                                     \
        name(ROW, TRANS, NO_TRANS, p->n, p->m, p->k, p->alpha, p->b, p->ldb, p->a, p->lda, p->beta, p->c, \
             p->ldc);                                                                                     \
    }
CALL_FORTRAN(sgemm_64_, int64_t)
CALL_FORTRAN(scipy_sgemm_64_, int64_t)
CALL_FORTRAN(scipy_sgemm_, int)
CALL_CBLAS(cblas_sgemm_64)
CALL_CBLAS(cblas_sgemm64_)
CALL_CBLAS(scipy_cblas_sgemm64_)
CALL_CBLAS(scipy_cblas_sgemm)

static void gemm(const char *name, void (*call)(const product *p))
{
    product p = shape;
    float *a = random_matrix(LDA, K, 1), *b = random_matrix(LDB, K, 2), *c = random_matrix(LDC, N, 3),
          *old = random_matrix(LDC, N, 3);
    p.a = a;
    p.b = b;
    p.c = c;
    call(&p);
    tell(product_is_right(&p, old), name);
    free(a);
    free(b);
    free(c);
    free(old);
}

/* ---- one triangle of C */

static void triangle(const char *name, fortran_gemmtr *fortran, cblas_gemmtr *cblas)
{
    static const char *const pairs[] = { "NN", "NT", "TN", "ct" };
    bool right = true;
    for (int i = 0; i < 4; i++)
        for (int lower = 0; lower < 2; lower++)
            for (int size = 1; size <= 150; size += 149) {
                product p = { pairs[i][0], pairs[i][1], size, size, 77, -1, NULL, 160, NULL, 170,
                              i % 2 ? 0 : 2.5f, NULL, 155, lower ? 'L' : 'U' };
                float *a = random_matrix(160, 160, 4), *b = random_matrix(170, 170, 5),
                      *c = random_matrix(155, size, 6), *old = random_matrix(155, size, 6);
                char uplo = i % 2 ? p.uplo : (char)(p.uplo + 32);
                p.a = a;
                p.b = b;
                p.c = c;
                if (fortran)
                    fortran(&uplo, &p.ta, &p.tb, &p.n, &p.k, &p.alpha, a, &p.lda, b, &p.ldb, &p.beta, c,
                            &p.ldc);
                else if (i < 2)
                    cblas(COLUMN, lower ? LOWER : UPPER, cblas_trans(p.ta), cblas_trans(p.tb), size, p.k,
                          p.alpha, a, p.lda, b, p.ldb, p.beta, c, p.ldc);
                else
                    cblas(ROW, lower ? UPPER : LOWER, cblas_trans(p.tb), cblas_trans(p.ta), size, p.k,
                          p.alpha, b, p.ldb, a, p.lda, p.beta, c, p.ldc);
                right &= product_is_right(&p, old);
                free(a);
                free(b);
                free(c);
                free(old);
            }
    tell(right, name);
}

static void triangle_errors(const char *name, fortran_gemmtr *gemmtr)
{
    static const struct { int number; char uplo, ta, tb; int n, k, lda, ldb, ldc; } cases[] = {
        { 1, 'X', 'N', 'N', 4, 4, 4, 4, 4 },  { 2, 'U', 'X', 'N', 4, 4, 4, 4, 4 },
        { 3, 'L', 'N', 'X', 4, 4, 4, 4, 4 },  { 4, 'U', 'N', 'N', -1, 4, 4, 4, 4 },
        { 5, 'U', 'T', 'N', 4, -1, 4, 4, 4 }, { 8, 'U', 'N', 'N', 4, 2, 3, 4, 4 },
        { 10, 'L', 'N', 'T', 4, 2, 4, 3, 4 }, { 13, 'L', 'N', 'N', 4, 4, 4, 4, 3 },
    };
    float a[16] = { 0 }, c[16] = { 0 }, old[16] = { 0 }, one = 1;
    bool right = true;
    for (int i = 0; i < 8; i++) {
        reported = -1;
        gemmtr(&cases[i].uplo, &cases[i].ta, &cases[i].tb, &cases[i].n, &cases[i].k, &one, a, &cases[i].lda,
               a, &cases[i].ldb, &one, c, &cases[i].ldc);
        if (reported != cases[i].number)
            printf("  case %d: number %d, wanted %d\n", i, reported, cases[i].number);
        right &= reported == cases[i].number && memcmp(c, old, sizeof c) == 0;
    }
    tell(right, name);
}

/* ---- batches: two groups of different shape, or one stride */

enum { FIRST = 3, SECOND = 5, MEMBERS = FIRST + SECOND };

static void batch(const char *name, bool fortran, int layout)
{
    const int groups = 2, sizes[] = { FIRST, SECOND }, m[] = { 33, 64 }, n[] = { 21, 64 }, k[] = { 17, 50 };
    const int lda[] = { 50, 64 }, ldb[] = { 40, 66 }, ldc[] = { 33, 70 };
    const float alpha[] = { 1, -0.5f }, beta[] = { 0, 2 };
    const char ta[] = { 'N', 'T' }, tb[] = { 'T', 'N' };
    const int trans_a[] = { NO_TRANS, TRANS }, trans_b[] = { TRANS, NO_TRANS };
    const float *a[MEMBERS], *b[MEMBERS];
    float *c[MEMBERS], *old[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        a[i] = random_matrix(70, 70, (uint64_t)(10 + i));
        b[i] = random_matrix(70, 70, (uint64_t)(20 + i));
        c[i] = random_matrix(70, 70, (uint64_t)(30 + i));
        old[i] = random_matrix(70, 70, (uint64_t)(30 + i));
    }
    if (fortran) sgemm_batch_(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, &groups, sizes);
    else if (layout == COLUMN)
        cblas_sgemm_batch(COLUMN, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, groups,
                          sizes);
    else
        cblas_sgemm_batch(ROW, trans_b, trans_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc, groups, sizes);
    bool right = true;
    for (int i = 0; i < MEMBERS; i++) {
        int g = i >= FIRST;
        product p = { ta[g],  tb[g], m[g],   n[g],    k[g], alpha[g], a[i],
                      lda[g], b[i],  ldb[g], beta[g], c[i], ldc[g],   'G' };
        right &= product_is_right(&p, old[i]);
        free((void *)(uintptr_t)a[i]);
        free((void *)(uintptr_t)b[i]);
        free(c[i]);
        free(old[i]);
    }
    tell(right, name);
}

/* stride_b = 0: one B for all members, as programs do with weights. */
static void strided(const char *name, bool fortran, int layout, int stride_b)
{
    const int m = 40, n = 30, k = 50, lda = 45, ldb = 52, ldc = 41, members = 6, stride_a = lda * k + 3,
              stride_c = ldc * n + 5;
    const float alpha = 0.75f, beta = 1;
    float *a = random_matrix(stride_a, members, 40),
          *b = random_matrix(ldb * n + most(stride_b, 0), members, 41);
    float *c = random_matrix(stride_c, members, 42), *old = random_matrix(stride_c, members, 42);
    if (fortran)
        sgemm_batch_strided_("N", "N", &m, &n, &k, &alpha, a, &lda, &stride_a, b, &ldb, &stride_b, &beta, c,
                             &ldc, &stride_c, &members);
    else if (layout == COLUMN)
        cblas_sgemm_batch_strided(COLUMN, NO_TRANS, NO_TRANS, m, n, k, alpha, a, lda, stride_a, b, ldb,
                                  stride_b, beta, c, ldc, stride_c, members);
    else
        cblas_sgemm_batch_strided(ROW, NO_TRANS, NO_TRANS, n, m, k, alpha, b, ldb, stride_b, a, lda, stride_a,
                                  beta, c, ldc, stride_c, members);
    bool right = true;
    for (int i = 0; i < members; i++) {
        product p = { 'N', 'N', m, n, k, alpha, a + (size_t)i * (size_t)stride_a, lda,
                      b + (size_t)i * (size_t)stride_b, ldb, beta, c + (size_t)i * (size_t)stride_c, ldc,
                      'G' };
        right &= product_is_right(&p, old + (size_t)i * (size_t)stride_c);
        right &= memcmp(p.c + (size_t)ldc * (size_t)n,
                        old + (size_t)i * (size_t)stride_c + (size_t)ldc * (size_t)n, 5 * sizeof(float))
                 == 0;
    }
    tell(right, name);
    free(a);
    free(b);
    free(c);
    free(old);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    gemm("sgemm_64_", call_sgemm_64_);
    gemm("scipy_sgemm_64_", call_scipy_sgemm_64_);
    gemm("scipy_sgemm_", call_scipy_sgemm_);
    gemm("cblas_sgemm_64", call_cblas_sgemm_64);
    gemm("cblas_sgemm64_", call_cblas_sgemm64_);
    gemm("scipy_cblas_sgemm64_", call_scipy_cblas_sgemm64_);
    gemm("scipy_cblas_sgemm", call_scipy_cblas_sgemm);
    triangle("sgemmtr_", sgemmtr_, NULL);
    triangle("sgemmt_", sgemmt_, NULL);
    triangle("cblas_sgemmtr", NULL, cblas_sgemmtr);
    triangle("cblas_sgemmt", NULL, cblas_sgemmt);
    triangle_errors("errors of sgemmtr_", sgemmtr_);
    triangle_errors("errors of sgemmt_", sgemmt_);
    batch("sgemm_batch_", true, COLUMN);
    batch("cblas_sgemm_batch, columns", false, COLUMN);
    batch("cblas_sgemm_batch, rows", false, ROW);
    strided("sgemm_batch_strided_", true, COLUMN, 52 * 30 + 7);
    strided("cblas_sgemm_batch_strided, columns", false, COLUMN, 52 * 30 + 7);
    strided("cblas_sgemm_batch_strided, rows", false, ROW, 52 * 30 + 7);
    strided("sgemm_batch_strided_, one B", true, COLUMN, 0);
    return wrong > 0;
}
