/* SPDX-License-Identifier: MIT */
/* Calls of the names that netlib's testers do not know, compared with plain loops. test_embedded.sh runs
   this in front of the embedded BLAS. With the argument "errors": illegal calls only, whose messages the
   script reads. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/host/level3_abi.h"

typedef float _Complex complex32;
typedef double _Complex complex64;

#define DECLARE(p, T, SCALAR, tail, c_tail, INT)                                 \
    void p##gemm##tail(GPB_F77_GEMM_PARAMS(T, INT));                             \
    void p##gemmtr##tail(GPB_F77_GEMMTR_PARAMS(T, INT));                         \
    void p##gemmt##tail(GPB_F77_GEMMTR_PARAMS(T, INT));                          \
    void p##gemm_batch##tail(GPB_F77_GEMM_BATCH_PARAMS(T, INT));                 \
    void p##gemm_batch_strided##tail(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(T, INT)); \
    void cblas_##p##gemm##c_tail(GPB_CBLAS_GEMM_PARAMS(T, SCALAR, INT));         \
    void cblas_##p##gemmt##c_tail(GPB_CBLAS_GEMMTR_PARAMS(T, SCALAR, INT));      \
    void cblas_##p##gemmtr##c_tail(GPB_CBLAS_GEMMTR_PARAMS(T, SCALAR, INT));     \
    void cblas_##p##gemm_batch##c_tail(GPB_CBLAS_GEMM_BATCH_PARAMS(T, INT));     \
    void cblas_##p##gemm_batch_strided##c_tail(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(T, SCALAR, INT));
#define DECLARE_BOTH(p, T, SCALAR) \
    DECLARE(p, T, SCALAR, _, , int32_t) DECLARE(p, T, SCALAR, _64_, _64, int64_t)
DECLARE_BOTH(s, float, float)
DECLARE_BOTH(d, double, double)
DECLARE_BOTH(c, complex32, const complex32 *)
DECLARE_BOTH(z, complex64, const complex64 *)
void cblas_dgemm64_(GPB_CBLAS_GEMM_PARAMS(double, double, int64_t));
int32_t isamax_(const int32_t *n, const float *x, const int32_t *incx);
int64_t isamax_64_(const int64_t *n, const float *x, const int64_t *incx);
complex32 cdotc_64_(const int64_t *n, const complex32 *x, const int64_t *incx, const complex32 *y,
                    const int64_t *incy);
complex64 zdotu_(const int32_t *n, const complex64 *x, const int32_t *incx, const complex64 *y,
                 const int32_t *incy);
float snrm2_(const int32_t *n, const float *x, const int32_t *incx);
double dznrm2_64_(const int64_t *n, const complex64 *x, const int64_t *incx);
void crotg_(complex32 *a, const complex32 *b, float *c, complex32 *s);
void ztrsm_(const char *, const char *, const char *, const char *, const int32_t *, const int32_t *,
            const complex64 *, const complex64 *, const int32_t *, complex64 *, const int32_t *);

static int checks, failures;

static void expect(int good, const char *what, int line)
{
    checks++;
    if (good) return;
    failures++;
    printf("FAIL  test_embedded.c:%d: %s\n", line, what);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* Small whole numbers, so every sum is exact in every precision and results are compared with ==. */
static double whole(void)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return (int)(state >> 28) - 8;
}

/* Element (i,j) of op(X), X stored by rows or by columns. */
static complex64 at(const complex64 *x, int row_major, char trans, int64_t i, int64_t j, int64_t ld)
{
    if (trans != 'N') { int64_t held = i; i = j; j = held; }
    complex64 value = row_major ? x[i * ld + j] : x[i + j * ld];
    return trans == 'C' ? conj(value) : value;
}

/* C = alpha op(A) op(B) + beta C in plain loops; uplo 'G', or that triangle only. */
static void plain(int row, char uplo, char ta, char tb, int64_t m, int64_t n, int64_t k, complex64 alpha,
                  const complex64 *a, int64_t lda, const complex64 *b, int64_t ldb, complex64 beta,
                  complex64 *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            if ((uplo == 'U' && i > j) || (uplo == 'L' && i < j)) continue;
            complex64 sum = 0, *to = row ? c + i * ldc + j : c + i + j * ldc;
            for (int64_t p = 0; p < k; p++) sum += at(a, row, ta, i, p, lda) * at(b, row, tb, p, j, ldb);
            *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
        }
}

enum { LD = 13, SIZE = LD * LD, MEMBERS = 5, ALL = SIZE * MEMBERS };
static complex64 wide_a[ALL], wide_b[ALL], wide_c[ALL];

static int enumerator(char trans) { return trans == 'N' ? 111 : trans == 'T' ? 112 : 113; }

/* One precision and width: two groups of members (3 of 7x5x4, then 2 of 6x9x3, all within LD), then one
   strided batch, then gemmtr. */
#define FAMILY(p, T, SCALAR, BY, tail, c_tail, INT, REAL)                                                    \
    static void family_##p##tail(int row, char ta, char tb)                                                  \
    {                                                                                                        \
        static T a[ALL], b[ALL], c[ALL], before[ALL];                                                        \
        for (int i = 0; i < ALL; i++) {                                                                      \
            wide_a[i] = a[i] = whole() + REAL * whole() * 1.0i;                                              \
            wide_b[i] = b[i] = whole() + REAL * whole() * 1.0i;                                              \
            before[i] = whole() + REAL * whole() * 1.0i;                                                     \
        }                                                                                                    \
        char tas[2] = {ta, tb}, tbs[2] = {tb, ta};                                                           \
        int etas[2] = {enumerator(ta), enumerator(tb)}, etbs[2] = {enumerator(tb), enumerator(ta)};          \
        INT m[2] = {7, 6}, n[2] = {5, 9}, k[2] = {4, 3}, ld[2] = {LD, LD}, size[2] = {3, 2};                 \
        INT groups = 2, stride = SIZE, all = MEMBERS;                                                        \
        T alpha[2] = {2, -1 + REAL * 1.0i}, beta[2] = {3, 0};                                                \
        const T *as[MEMBERS], *bs[MEMBERS];                                                                  \
        T *cs[MEMBERS];                                                                                      \
        for (int l = 0; l < MEMBERS; l++) {                                                                  \
            as[l] = a + l * SIZE;                                                                            \
            bs[l] = b + l * SIZE;                                                                            \
            cs[l] = c + l * SIZE;                                                                            \
        }                                                                                                    \
                                                                                                             \
        RESET() for (int l = 0; l < MEMBERS; l++) {                                                          \
            int g = l >= 3;                                                                                  \
            plain(row, 'G', tas[g], tbs[g], m[g], n[g], k[g], alpha[g], wide_a + l * SIZE, LD,               \
                  wide_b + l * SIZE, LD, beta[g], wide_c + l * SIZE, LD);                                    \
        }                                                                                                    \
        cblas_##p##gemm_batch##c_tail(row ? 101 : 102, etas, etbs, m, n, k, alpha, as, ld, bs, ld, beta,     \
                                      cs, ld, groups, size);                                                 \
        SAME()                                                                                               \
        if (!row) {                                                                                          \
            for (int i = 0; i < ALL; i++) c[i] = before[i];                                                  \
            p##gemm_batch##tail(tas, tbs, m, n, k, alpha, as, ld, bs, ld, beta, cs, ld, &groups, size);      \
            SAME()                                                                                           \
        }                                                                                                    \
                                                                                                             \
        RESET() for (int l = 0; l < MEMBERS; l++)                                                            \
            plain(row, 'G', ta, tb, *m, *n, *k, *alpha, wide_a + l * SIZE, LD, wide_b + l * SIZE, LD, *beta, \
                  wide_c + l * SIZE, LD);                                                                    \
        cblas_##p##gemm_batch_strided##c_tail(row ? 101 : 102, *etas, *etbs, *m, *n, *k, BY alpha, a, LD,    \
                                              stride, b, LD, stride, BY beta, c, LD, stride, all);           \
        SAME()                                                                                               \
        if (!row) {                                                                                          \
            for (int i = 0; i < ALL; i++) c[i] = before[i];                                                  \
            p##gemm_batch_strided##tail(tas, tbs, m, n, k, alpha, a, ld, &stride, b, ld, &stride, beta,      \
                                          c, ld, &stride, &all);                                             \
            SAME()                                                                                           \
        }                                                                                                    \
                                                                                                             \
        for (int lower = 0; lower < 2; lower++) {                                                            \
            const char *uplo = lower ? "L" : "U";                                                            \
            RESET() plain(row, *uplo, ta, tb, 11, 11, 6, *alpha, wide_a, LD, wide_b, LD, *beta, wide_c, LD); \
            cblas_##p##gemmtr##c_tail(row ? 101 : 102, 121 + lower, *etas, *etbs, 11, 6, BY alpha, a, LD,    \
                                      b, LD, BY beta, c, LD);                                                \
            SAME()                                                                                           \
            for (int i = 0; i < ALL; i++) c[i] = before[i];                                                  \
            cblas_##p##gemmt##c_tail(row ? 101 : 102, 121 + lower, *etas, *etbs, 11, 6, BY alpha, a, LD,     \
                                     b, LD, BY beta, c, LD);                                                 \
            SAME()                                                                                           \
            if (row) continue;                                                                               \
            for (int i = 0; i < ALL; i++) c[i] = before[i];                                                  \
            p##gemmtr##tail(uplo, tas, tbs, &(INT){11}, &(INT){6}, alpha, a, ld, b, ld, beta, c, ld);        \
            SAME()                                                                                           \
            for (int i = 0; i < ALL; i++) c[i] = before[i];                                                  \
            p##gemmt##tail(uplo, tas, tbs, &(INT){11}, &(INT){6}, alpha, a, ld, b, ld, beta, c, ld);         \
            SAME()                                                                                           \
        }                                                                                                    \
    }
/* C as it was, and its wide twin; then the two equal, all of them: what lies outside a matrix too. */
#define RESET() for (int i = 0; i < ALL; i++) wide_c[i] = c[i] = before[i];
#define SAME()                                                        \
    {                                                                 \
        int different = 0;                                            \
        for (int i = 0; i < ALL; i++) different += c[i] != wide_c[i]; \
        EXPECT(different == 0);                                       \
    }
#define FAMILY_BOTH(p, T, SCALAR, BY, REAL) \
    FAMILY(p, T, SCALAR, BY, _, , int32_t, REAL) FAMILY(p, T, SCALAR, BY, _64_, _64, int64_t, REAL)
FAMILY_BOTH(s, float, float, *, 0)
FAMILY_BOTH(d, double, double, *, 0)
FAMILY_BOTH(c, complex32, const complex32 *, , 1)
FAMILY_BOTH(z, complex64, const complex64 *, , 1)

/* gemm3m, which only complex numbers have */
#define GEMM3M(p, T, tail, c_tail, INT)                                                                    \
    void p##gemm3m##tail(GPB_F77_GEMM_PARAMS(T, INT));                                                     \
    void cblas_##p##gemm3m##c_tail(GPB_CBLAS_GEMM_PARAMS(T, const T *, INT));                              \
    static void gemm3m_##p##tail(int row, char ta, char tb)                                                \
    {                                                                                                      \
        static T a[ALL], b[ALL], c[ALL], before[ALL];                                                      \
        for (int i = 0; i < ALL; i++) {                                                                    \
            wide_a[i] = a[i] = whole() + whole() * 1.0i;                                                   \
            wide_b[i] = b[i] = whole() + whole() * 1.0i;                                                   \
            before[i] = whole() + whole() * 1.0i;                                                          \
        }                                                                                                  \
        const T alpha = 2 - 1.0i, beta = -1 + 3.0i;                                                        \
        const INT m = 7, n = 5, k = 4, ld = LD;                                                            \
        RESET() plain(row, 'G', ta, tb, m, n, k, alpha, wide_a, LD, wide_b, LD, beta, wide_c, LD);         \
        cblas_##p##gemm3m##c_tail(row ? 101 : 102, enumerator(ta), enumerator(tb), m, n, k, &alpha, a, ld, \
                                  b, ld, &beta, c, ld);                                                    \
        SAME()                                                                                             \
        if (row) return;                                                                                   \
        for (int i = 0; i < ALL; i++) c[i] = before[i];                                                    \
        p##gemm3m##tail(&ta, &tb, &m, &n, &k, &alpha, a, &ld, b, &ld, &beta, c, &ld);                      \
        SAME()                                                                                             \
    }
GEMM3M(c, complex32, _, , int32_t)
GEMM3M(c, complex32, _64_, _64, int64_t)
GEMM3M(z, complex64, _, , int32_t)
GEMM3M(z, complex64, _64_, _64, int64_t)

static void families(void)
{
    const char letters[] = "NTC";
    for (int row = 0; row < 2; row++)
        for (int i = 0; i < 9; i++) {
            char ta = letters[i / 3], tb = letters[i % 3];
            family_s_(row, ta, tb);
            family_s_64_(row, ta, tb);
            family_d_(row, ta, tb);
            family_d_64_(row, ta, tb);
            family_c_(row, ta, tb);
            family_c_64_(row, ta, tb);
            family_z_(row, ta, tb);
            family_z_64_(row, ta, tb);
            gemm3m_c_(row, ta, tb);
            gemm3m_c_64_(row, ta, tb);
            gemm3m_z_(row, ta, tb);
            gemm3m_z_64_(row, ta, tb);
        }
}

static void names_64(void)
{
    int64_t n2 = 2, n3 = 3, one = 1;
    float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[] = {NAN, NAN, NAN, NAN};
    /* Lower case; C is not read. */
    sgemm_64_("n", "t", &n2, &n2, &n2, &(float){1}, a, &n2, b, &n2, &(float){0}, c, &n2);
    EXPECT(c[0] == 26 && c[1] == 38 && c[2] == 30 && c[3] == 44);
    double da[] = {1, 2, 3, 4}, db[] = {5, 6, 7, 8}, dc[] = {1, 1, 1, 1};
    cblas_dgemm_64(101, 111, 111, 2, 2, 2, 1, da, 2, db, 2, 1, dc, 2);
    EXPECT(dc[0] == 20 && dc[1] == 23 && dc[2] == 44 && dc[3] == 51);
    cblas_dgemm64_(102, 111, 111, 2, 2, 2, 1, da, 2, db, 2, 0, dc, 2);
    EXPECT(dc[0] == 23 && dc[1] == 34 && dc[2] == 31 && dc[3] == 46);
    EXPECT(isamax_64_(&n3, (float[]){1, -9, 3}, &one) == 2);
    /* libblastrampoline's probe: below 0 for 64-bit integers, 3 for 32-bit ones. */
    int64_t probe = INT64_C(-4294967293);
    int32_t low;
    memcpy(&low, &probe, sizeof low);
    EXPECT(isamax_64_(&probe, NULL, &one) == 0);
    EXPECT(low == 3 && isamax_(&low, (float[]){1, 9, 3}, &(int32_t){1}) == 2);
    complex32 x[] = {1 + 2.0fi, 3 - 1.0fi}, y[] = {2 + 1.0fi, 1 + 1.0fi};
    EXPECT(cdotc_64_(&n2, x, &one, y, &one) == 6 + 1.0fi);
    complex64 zx[] = {1 + 2.0i, 3 - 1.0i}, zy[] = {2 + 1.0i, 1 + 1.0i};
    EXPECT(zdotu_(&(int32_t){2}, zx, &(int32_t){1}, zy, &(int32_t){-1}) == 6 + 4.0i);
}

static void semantics(void)
{
    int32_t n2 = 2, n3 = 3, one = 1;
    float c[] = {1, 2, NAN, 4, 5, NAN};
    /* alpha = 0, so A and B are not read. */
    sgemm_("N", "N", &n2, &n2, &n3, &(float){0}, NULL, &n3, NULL, &n3, &(float){2}, c, &n3);
    EXPECT(c[0] == 2 && c[1] == 4 && isnan(c[2]) && c[3] == 8 && c[4] == 10 && isnan(c[5]));
    float a[] = {INFINITY, 0, 0, 0}, b[] = {0, 1, 1, NAN}, d[] = {NAN, NAN, NAN, NAN};
    /* Inf times 0 and 0 times NaN are NaN. */
    sgemm_("N", "N", &n2, &n2, &n2, &(float){1}, a, &n2, b, &n2, &(float){0}, d, &n2);
    EXPECT(isnan(d[0]) && d[1] == 0 && isnan(d[2]) && isnan(d[3]));
    float tiny = 0x1p-140f, one_f[] = {1}, e[] = {0};
    sgemm_("N", "N", &one, &one, &one, &(float){1}, &tiny, &one, one_f, &one, &(float){1}, e, &one);
    EXPECT(e[0] == tiny);  /* subnormals survive */

    EXPECT(fabsf(snrm2_(&n2, (float[]){3e38f, -1e38f}, &one) - 3.1622777e38f) < 1e32f);
    EXPECT(fabsf(snrm2_(&n2, (float[]){3e-45f, 4e-45f}, &(int32_t){-1}) - 5e-45f) < 2e-45f);
    EXPECT(isnan(snrm2_(&n2, (float[]){NAN, INFINITY}, &one)));
    double big = dznrm2_64_(&(int64_t){1}, &(complex64){1e308 + 1e308i}, &(int64_t){1});
    EXPECT(fabs(big / 1.4142135623730951e308 - 1) < 1e-15);

    complex32 r = 3e30f + 4e30fi, s;
    float cosine;
    crotg_(&r, &(complex32){0 + 12e30fi}, &cosine, &s);
    EXPECT(fabsf(cosine - 5 / 13.f) < 1e-6f && cabsf(r / 1e30f - (7.8f + 10.4fi)) < 1e-5f);
    EXPECT(cabsf(s - (complex32)((0.6f + 0.8fi) * -1.0fi * (12 / 13.f))) < 1e-6f);
}

/* What the library's own handlers say; test_embedded.sh holds the text. */
static void errors(void)
{
    int32_t n = 1, bad = -1, zero = 0;
    float x = 7;
    complex64 z = 7;
    double d = 7;
    sgemm_("N", "N", &bad, &n, &n, &x, &x, &n, &x, &n, &x, &x, &n);
    ztrsm_("l", "u", "c", "n", &n, &n, &z, &z, &n, &z, &zero);
    dgemmtr_("U", "N", "N", &bad, &n, &d, &d, &n, &d, &n, &d, &d, &n);
    cblas_sgemm(101, 7, 111, 1, 1, 1, 1, &x, 1, &x, 1, 1, &x, 1);
    zgemm3m_("N", "N", &n, &n, &n, &z, &z, &n, &z, &n, &z, &z, &zero);
    cblas_zgemm3m(102, 111, 7, 1, 1, 1, &z, &z, 1, &z, 1, &z, &z, 1);
    if (x != 7 || z != 7 || d != 7) exit(1);  /* and C is left alone */
}

int main(int count, char **argument)
{
    if (count > 1 && strcmp(argument[1], "errors") == 0) {
        errors();
        return 0;
    }
    families();
    names_64();
    semantics();
    printf("%d of %d checks of values\n", checks - failures, checks);
    return failures != 0;
}
