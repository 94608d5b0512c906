/* SPDX-License-Identifier: MIT */
/* The GEMM names beyond netlib 3.11's: gemmtr and gemmt, gemm3m, the batches, 64-bit integers, and the names
   inside the NumPy and SciPy wheels. Linked with -lgpublas alone, because no host BLAS of Debian has them
   all. Prints a line a name and exits with 1 if any was wrong. */
#include "matrix.h"
#include <complex.h>

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

/* ---- gemm3m: 7 x 5 x 6 of small whole numbers, which three real products leave exact too */

enum { SIDE = 9, ELEMENTS = SIDE * SIDE };

typedef struct complex_product {
    char ta, tb;
    const void *alpha, *a, *b, *beta;
    void *c;
} complex_product;

#define CALL_FORTRAN_3M(name, integer)                                                                     \
    void name(const char *, const char *, const integer *, const integer *, const integer *, const void *, \
              const void *, const integer *, const void *, const integer *, const void *, void *,          \
              const integer *);                                                                            \
    static void call_##name(const complex_product *p)                                                      \
    {                                                                                                      \
        const integer m = 7, n = 5, k = 6, ld = SIDE;                                                      \
        name(&p->ta, &p->tb, &m, &n, &k, p->alpha, p->a, &ld, p->b, &ld, p->beta, p->c, &ld);              \
    }
#define CALL_CBLAS_3M(name, integer, layout)                                                               \
    void name(int, int, int, integer, integer, integer, const void *, const void *, integer, const void *, \
              integer, const void *, void *, integer);                                                     \
    static void call_##name(const complex_product *p)                                                      \
    {                                                                                                      \
        const int ta = cblas_trans(p->ta), tb = cblas_trans(p->tb);                                        \
        if (layout == COLUMN)                                                                              \
            name(COLUMN, ta, tb, 7, 5, 6, p->alpha, p->a, SIDE, p->b, SIDE, p->beta, p->c, SIDE);          \
        else name(ROW, tb, ta, 5, 7, 6, p->alpha, p->b, SIDE, p->a, SIDE, p->beta, p->c, SIDE);            \
    }
CALL_FORTRAN_3M(cgemm3m_, int)
CALL_FORTRAN_3M(cgemm3m_64_, int64_t)
CALL_CBLAS_3M(cblas_cgemm3m, int, ROW)
CALL_CBLAS_3M(cblas_cgemm3m_64, int64_t, COLUMN)
CALL_CBLAS_3M(cblas_cgemm3m64_, int64_t, ROW)
CALL_FORTRAN_3M(zgemm3m_, int)
CALL_FORTRAN_3M(zgemm3m_64_, int64_t)
CALL_CBLAS_3M(cblas_zgemm3m, int, COLUMN)
CALL_CBLAS_3M(cblas_zgemm3m_64, int64_t, ROW)
CALL_CBLAS_3M(cblas_zgemm3m64_, int64_t, COLUMN)

static double complex transposed_element(const double complex *x, char trans, int i, int j)
{
    const double complex value = trans == 'N' ? x[i + SIDE * j] : x[j + SIDE * i];
    return trans == 'C' ? conj(value) : value;
}

/* In plain loops. */
static void multiply_complex(const complex_product *p)
{
    const double complex *a = p->a, *b = p->b, *alpha = p->alpha, *beta = p->beta;
    double complex *c = p->c;
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 7; i++) {
            double complex sum = 0;
            for (int l = 0; l < 6; l++)
                sum += transposed_element(a, p->ta, i, l) * transposed_element(b, p->tb, l, j);
            c[i + SIDE * j] = *alpha * sum + *beta * c[i + SIDE * j];
        }
}

/* Matrices and scalars of one product, in double complex and as the routine takes them. */
typedef struct complex_data {
    double complex a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], alpha[1], beta[1];
} complex_data;
typedef struct single_data {
    float complex a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], alpha[1], beta[1];
} single_data;
enum { NUMBERS = sizeof(complex_data) / sizeof(double complex) };

static bool product_3m(char ta, char tb, bool single, uint64_t seed, void (*call)(const complex_product *))
{
    complex_data wide, given;
    single_data narrow;
    double complex *each = (double complex *)&wide, *each_given = (double complex *)&given;
    float complex *each_narrow = (float complex *)&narrow;
    for (int i = 0; i < NUMBERS; i++) {
        each[i] = floor(8 * (double)draw(&seed)) + floor(8 * (double)draw(&seed)) * I;
        each_given[i] = each[i];
        each_narrow[i] = (float complex)each[i];
    }
    multiply_complex(&(complex_product){ ta, tb, wide.alpha, wide.a, wide.b, wide.beta, wide.c });
    if (single)
        call(&(complex_product){ ta, tb, narrow.alpha, narrow.a, narrow.b, narrow.beta, narrow.c });
    else call(&(complex_product){ ta, tb, given.alpha, given.a, given.b, given.beta, given.c });
    bool right = true;
    for (int i = 0; i < NUMBERS; i++)
        right &= (single ? (double complex)each_narrow[i] : each_given[i]) == each[i];
    return right;
}

static void gemm3m(const char *name, bool single, void (*call)(const complex_product *))
{
    bool right = true;
    for (int i = 0; i < 9; i++)
        right &= product_3m("NTC"[i / 3], "NTC"[i % 3], single, (uint64_t)(50 + i), call);
    tell(right, name);
}

typedef void fortran_3m(const char *, const char *, const int *, const int *, const int *, const void *,
                        const void *, const int *, const void *, const int *, const void *, void *,
                        const int *);

static void gemm3m_errors(const char *name, fortran_3m *gemm3m)
{
    static const struct { int number; char ta, tb; int m, n, k, lda, ldb, ldc; } cases[] = {
        { 1, 'X', 'N', 4, 4, 4, 4, 4, 4 },  { 2, 'N', 'X', 4, 4, 4, 4, 4, 4 },
        { 3, 'N', 'N', -1, 4, 4, 4, 4, 4 }, { 4, 'N', 'N', 4, -1, 4, 4, 4, 4 },
        { 5, 'N', 'T', 4, 4, -1, 4, 4, 4 }, { 8, 'N', 'N', 4, 4, 2, 3, 4, 4 },
        { 10, 'N', 'C', 4, 4, 2, 4, 3, 4 }, { 13, 'C', 'N', 4, 4, 4, 4, 4, 3 },
    };
    double complex a[16] = { 0 }, c[16] = { 0 }, old[16] = { 0 }, one = 1;
    bool right = true;
    for (int i = 0; i < 8; i++) {
        reported = -1;
        gemm3m(&cases[i].ta, &cases[i].tb, &cases[i].m, &cases[i].n, &cases[i].k, &one, a, &cases[i].lda, a,
               &cases[i].ldb, &one, c, &cases[i].ldc);
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

static void all_3m(void)
{
    gemm3m("cgemm3m_", true, call_cgemm3m_);
    gemm3m("cgemm3m_64_", true, call_cgemm3m_64_);
    gemm3m("cblas_cgemm3m", true, call_cblas_cgemm3m);
    gemm3m("cblas_cgemm3m_64", true, call_cblas_cgemm3m_64);
    gemm3m("cblas_cgemm3m64_", true, call_cblas_cgemm3m64_);
    gemm3m("zgemm3m_", false, call_zgemm3m_);
    gemm3m("zgemm3m_64_", false, call_zgemm3m_64_);
    gemm3m("cblas_zgemm3m", false, call_cblas_zgemm3m);
    gemm3m("cblas_zgemm3m_64", false, call_cblas_zgemm3m_64);
    gemm3m("cblas_zgemm3m64_", false, call_cblas_zgemm3m64_);
    gemm3m_errors("errors of cgemm3m_", cgemm3m_);
    gemm3m_errors("errors of zgemm3m_", zgemm3m_);
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
    all_3m();
    batch("sgemm_batch_", true, COLUMN);
    batch("cblas_sgemm_batch, columns", false, COLUMN);
    batch("cblas_sgemm_batch, rows", false, ROW);
    strided("sgemm_batch_strided_", true, COLUMN, 52 * 30 + 7);
    strided("cblas_sgemm_batch_strided, columns", false, COLUMN, 52 * 30 + 7);
    strided("cblas_sgemm_batch_strided, rows", false, ROW, 52 * 30 + 7);
    strided("sgemm_batch_strided_, one B", true, COLUMN, 0);
    return wrong > 0;
}
