/* SPDX-License-Identifier: MIT */
/* Level 2, Fortran: argument checks in netlib's order, quick returns, then a body of embedded/matvec.h. Real
   SY, SB, SP and complex HE, HB, HP are the same routines under other names. The numbers are those of illegal
   parameters. */

#if COMPLEX
#define SYMMETRIC(stem) he##stem
#define SYMMETRIC_BAND(stem) hb##stem
#define SYMMETRIC_PACKED(stem) hp##stem
#else
#define SYMMETRIC(stem) sy##stem
#define SYMMETRIC_BAND(stem) sb##stem
#define SYMMETRIC_PACKED(stem) sp##stem
#endif

void F77(gemv)(const char *trans, const INT *m, const INT *n, const T *alpha, const T *a,
               const INT *lda, const T *x, const INT *incx, const T *beta, T *y, const INT *incy)
{
    int t = letter_of("NTC", trans);
    if (BAD(gemv, !t ? 1 : *m < 0 ? 2 : *n < 0 ? 3 : *lda < at_least_1(*m) ? 6 : *incx == 0 ? 8
                  : *incy == 0 ? 11 : 0)) return;
    if (*m == 0 || *n == 0) return;
    bool by_columns = (t & ~CONJUGATED) == 'N';
    int64_t size_x = by_columns ? *n : *m, size_y = by_columns ? *m : *n;
    y = FIRST(y, size_y, *incy);
    scale_vector(size_y, *beta, y, *incy);
    columns s = {FULL, (T *)a, *m, *m, *n, *lda};
    if (*alpha != 0) general_matvec(t, &s, *n, *alpha, FIRST(x, size_x, *incx), *incx, y, *incy);
}

void F77(gbmv)(const char *trans, const INT *m, const INT *n, const INT *kl, const INT *ku,
               const T *alpha, const T *a, const INT *lda, const T *x, const INT *incx, const T *beta, T *y,
               const INT *incy)
{
    int t = letter_of("NTC", trans);
    if (BAD(gbmv, !t ? 1 : *m < 0 ? 2 : *n < 0 ? 3 : *kl < 0 ? 4 : *ku < 0 ? 5
                  : *lda <= (int64_t)*kl + *ku ? 8 : *incx == 0 ? 10 : *incy == 0 ? 13 : 0)) return;
    if (*m == 0 || *n == 0) return;
    bool by_columns = (t & ~CONJUGATED) == 'N';
    int64_t size_x = by_columns ? *n : *m, size_y = by_columns ? *m : *n;
    y = FIRST(y, size_y, *incy);
    scale_vector(size_y, *beta, y, *incy);
    columns s = {BAND, (T *)a, *m, *kl, *ku, *lda};
    if (*alpha != 0) general_matvec(t, &s, *n, *alpha, FIRST(x, size_x, *incx), *incx, y, *incy);
}

static void LOCAL(symmetric)(int uplo, columns s, T alpha, const T *x, INT incx, T beta, T *y, INT incy)
{
    y = FIRST(y, s.m, incy);
    scale_vector(s.m, beta, y, incy);
    if (alpha != 0) symmetric_matvec(uplo & CONJUGATED, &s, alpha, FIRST(x, s.m, incx), incx, y, incy);
}

void F77(SYMMETRIC(mv))(const char *uplo, const INT *n, const T *alpha, const T *a, const INT *lda,
                        const T *x, const INT *incx, const T *beta, T *y, const INT *incy)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC(mv), !u ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 5 : *incx == 0 ? 7
                           : *incy == 0 ? 10 : 0)) return;
    LOCAL(symmetric)(u, triangle(FULL, u, a, *n, *lda), *alpha, x, *incx, *beta, y, *incy);
}

void F77(SYMMETRIC_BAND(mv))(const char *uplo, const INT *n, const INT *k, const T *alpha, const T *a,
                             const INT *lda, const T *x, const INT *incx, const T *beta, T *y,
                             const INT *incy)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC_BAND(mv), !u ? 1 : *n < 0 ? 2 : *k < 0 ? 3 : *lda <= *k ? 6 : *incx == 0 ? 8
                                : *incy == 0 ? 11 : 0)) return;
    LOCAL(symmetric)(u, band_triangle(u, a, *n, *k, *lda), *alpha, x, *incx, *beta, y, *incy);
}

void F77(SYMMETRIC_PACKED(mv))(const char *uplo, const INT *n, const T *alpha, const T *a, const T *x,
                               const INT *incx, const T *beta, T *y, const INT *incy)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC_PACKED(mv), !u ? 1 : *n < 0 ? 2 : *incx == 0 ? 6 : *incy == 0 ? 9 : 0)) return;
    LOCAL(symmetric)(u, triangle(PACKED, u, a, *n, 0), *alpha, x, *incx, *beta, y, *incy);
}

/* TRMV and TRSV, TBMV and TBSV, TPMV and TPSV. */
#define TRIANGULAR(stem, solve)                                                                \
    void F77(stem)(const char *uplo, const char *trans, const char *diag, const INT *n, const T *a, \
                   const INT *lda, T *x, const INT *incx) \
    {                                                                                          \
        int u = letter_of("UL", uplo), t = letter_of("NTC", trans), d = letter_of("NU", diag); \
        if (BAD(stem, !u ? 1 : !t ? 2 : !d ? 3 : *n < 0 ? 4 : *lda < at_least_1(*n) ? 6 \
                      : *incx == 0 ? 8 : 0)) return; \
        columns s = triangle(FULL, u, a, *n, *lda);                                            \
        triangular_matvec(solve, t, d == 'U', &s, FIRST(x, *n, *incx), *incx);                 \
    }
TRIANGULAR(trmv, false)
TRIANGULAR(trsv, true)

#define TRIANGULAR_BAND(stem, solve)                                                           \
    void F77(stem)(const char *uplo, const char *trans, const char *diag, const INT *n,        \
                   const INT *k, const T *a, const INT *lda,                                   \
                   T *x, const INT *incx)                                                      \
    {                                                                                          \
        int u = letter_of("UL", uplo), t = letter_of("NTC", trans), d = letter_of("NU", diag); \
        if (BAD(stem, !u ? 1 : !t ? 2 : !d ? 3 : *n < 0 ? 4 : *k < 0 ? 5 : *lda <= *k ? 7      \
                      : *incx == 0 ? 9 : 0)) return;                                           \
        columns s = band_triangle(u, a, *n, *k, *lda);                                         \
        triangular_matvec(solve, t, d == 'U', &s, FIRST(x, *n, *incx), *incx);                 \
    }
TRIANGULAR_BAND(tbmv, false)
TRIANGULAR_BAND(tbsv, true)

#define TRIANGULAR_PACKED(stem, solve)                                                                    \
    void F77(stem)(const char *uplo, const char *trans, const char *diag, const INT *n, const T *a, T *x, \
                   const INT *incx)                                                                       \
    {                                                                                                     \
        int u = letter_of("UL", uplo), t = letter_of("NTC", trans), d = letter_of("NU", diag);            \
        if (BAD(stem, !u ? 1 : !t ? 2 : !d ? 3 : *n < 0 ? 4 : *incx == 0 ? 7 : 0)) return;                \
        columns s = triangle(PACKED, u, a, *n, 0);                                                        \
        triangular_matvec(solve, t, d == 'U', &s, FIRST(x, *n, *incx), *incx);                            \
    }
TRIANGULAR_PACKED(tpmv, false)
TRIANGULAR_PACKED(tpsv, true)

/* GER, GERU, GERC; with x conjugated instead of y, as row-major GERC needs. */
static void LOCAL(rank_one)(const char *name, const INT *m, const INT *n, const T *alpha, const T *x,
                            const INT *incx, bool conj_x, const T *y, const INT *incy, bool conj_y,
                            T *a, const INT *lda)
{
    int info = *m < 0 ? 1 : *n < 0 ? 2 : *incx == 0 ? 5 : *incy == 0 ? 7 : *lda < at_least_1(*m) ? 9 : 0;
    if (gpb_embedded_bad(WIDTH, name, info) || *m == 0 || *alpha == 0) return;
    columns s = {FULL, a, *m, *m, *n, *lda};
    rank_one(&s, *n, *alpha, FIRST(x, *m, *incx), *incx, conj_x, FIRST(y, *n, *incy), *incy, conj_y);
}

#define GER(stem, conj_y)                                                                               \
    void F77(stem)(const INT *m, const INT *n, const T *alpha, const T *x, const INT *incx, const T *y, \
                   const INT *incy, T *a, const INT *lda)                                               \
    {                                                                                                   \
        LOCAL(rank_one)(NAME(stem), m, n, alpha, x, incx, false, y, incy, conj_y, a, lda);              \
    }
#if COMPLEX
GER(geru, false)
GER(gerc, true)
#else
GER(ger, false)
#endif

/* SYR, HER, SPR, HPR: alpha is real. */
static void LOCAL(syr)(int uplo, columns s, R alpha, const T *x, INT incx)
{
    bool conjugate = uplo & CONJUGATED;
    if (alpha == 0) return;
    x = FIRST(x, s.m, incx);
    rank_one(&s, s.m, alpha, x, incx, conjugate, x, incx, !conjugate);
    make_diagonal_real(&s);
}

void F77(SYMMETRIC(r))(const char *uplo, const INT *n, const R *alpha, const T *x, const INT *incx,
                       T *a, const INT *lda)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC(r), !u ? 1 : *n < 0 ? 2 : *incx == 0 ? 5 : *lda < at_least_1(*n) ? 7 : 0)) return;
    LOCAL(syr)(u, triangle(FULL, u, a, *n, *lda), *alpha, x, *incx);
}

void F77(SYMMETRIC_PACKED(r))(const char *uplo, const INT *n, const R *alpha, const T *x,
                              const INT *incx, T *a)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC_PACKED(r), !u ? 1 : *n < 0 ? 2 : *incx == 0 ? 5 : 0)) return;
    LOCAL(syr)(u, triangle(PACKED, u, a, *n, 0), *alpha, x, *incx);
}

static void LOCAL(syr2)(int uplo, columns s, T alpha, const T *x, INT incx, const T *y, INT incy)
{
    if (alpha == 0) return;
    rank_two(&s, alpha, FIRST(x, s.m, incx), incx, FIRST(y, s.m, incy), incy, uplo & CONJUGATED);
    make_diagonal_real(&s);
}

void F77(SYMMETRIC(r2))(const char *uplo, const INT *n, const T *alpha, const T *x, const INT *incx,
                        const T *y, const INT *incy, T *a, const INT *lda)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC(r2), !u ? 1 : *n < 0 ? 2 : *incx == 0 ? 5 : *incy == 0 ? 7
                           : *lda < at_least_1(*n) ? 9 : 0)) return;
    LOCAL(syr2)(u, triangle(FULL, u, a, *n, *lda), *alpha, x, *incx, y, *incy);
}

void F77(SYMMETRIC_PACKED(r2))(const char *uplo, const INT *n, const T *alpha, const T *x,
                               const INT *incx, const T *y, const INT *incy, T *a)
{
    int u = letter_of("UL", uplo);
    if (BAD(SYMMETRIC_PACKED(r2), !u ? 1 : *n < 0 ? 2 : *incx == 0 ? 5 : *incy == 0 ? 7 : 0)) return;
    LOCAL(syr2)(u, triangle(PACKED, u, a, *n, 0), *alpha, x, *incx, y, *incy);
}
