/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers, Fortran: argument checks in netlib's order, quick returns, then the algorithms of
   src/host/lapack.c on the exported Level 3, which may be faster than our bodies. */

/* If `number` is not 0, reports that parameter as illegal and puts its negative into *info. */
#define BAD_LAPACK(stem, number, info) (*(info) = -(INT)(number), BAD(stem, -*(info)))

static gpb_factor LOCAL(matrix)(const char *symbol, char uplo, INT m, INT n, const T *a, INT lda,
                                const INT *ipiv)
{
    return (gpb_factor){ .symbol = symbol, .type = TYPE_OF_P, .width = WIDTH, .uplo = uplo, .m = m, .n = n,
                         .a = (void *)(uintptr_t)a, .lda = lda, .ipiv = (void *)(uintptr_t)ipiv };
}

/* getrf2, potrf2: netlib's own recursions, which other hosts may lack. */
#define GETRF(stem)                                                                                  \
    void F77(stem)(GPB_GETRF_PARAMS(T, INT))                                                         \
    {                                                                                                \
        if (BAD_LAPACK(stem, *m < 0 ? 1 : *n < 0 ? 2 : *lda < at_least_1(*m) ? 4 : 0, info)) return; \
        const gpb_factor f = LOCAL(matrix)(NAME(stem), 'G', *m, *n, a, *lda, ipiv);                  \
        *info = (INT)gpb_lapack_factor(&f, &on_host);                                                \
    }
#define POTRF(stem)                                                                              \
    void F77(stem)(GPB_POTRF_PARAMS(T, INT))                                                     \
    {                                                                                            \
        const int u = letter_of("UL", uplo);                                                     \
        if (BAD_LAPACK(stem, !u ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 4 : 0, info)) return; \
        const gpb_factor f = LOCAL(matrix)(NAME(stem), (char)u, *n, *n, a, *lda, NULL);          \
        *info = (INT)gpb_lapack_factor(&f, &on_host);                                            \
    }
GETRF(getrf)
GETRF(getrf2)
POTRF(potrf)
POTRF(potrf2)
#undef GETRF
#undef POTRF

void F77(getrs)(GPB_GETRS_PARAMS(T, INT))
{
    const int t = letter_of("NTC", trans);
    if (BAD_LAPACK(getrs, !t ? 1 : *n < 0 ? 2 : *nrhs < 0 ? 3 : *lda < at_least_1(*n) ? 5
                          : *ldb < at_least_1(*n) ? 8 : 0, info)) return;
    gpb_lapack_solve(&(gpb_system){ LOCAL(matrix)(NAME(getrs), 'G', *n, *n, a, *lda, ipiv), (char)t, *nrhs, b,
                                    *ldb }, &on_host);
}

void F77(potrs)(GPB_POTRS_PARAMS(T, INT))
{
    const int u = letter_of("UL", uplo);
    if (BAD_LAPACK(potrs, !u ? 1 : *n < 0 ? 2 : *nrhs < 0 ? 3 : *lda < at_least_1(*n) ? 5
                          : *ldb < at_least_1(*n) ? 7 : 0, info)) return;
    gpb_lapack_solve(&(gpb_system){ LOCAL(matrix)(NAME(potrs), (char)u, *n, *n, a, *lda, NULL), 'N', *nrhs, b,
                                    *ldb }, &on_host);
}

void F77(gesv)(GPB_GESV_PARAMS(T, INT))
{
    if (BAD_LAPACK(gesv, *n < 0 ? 1 : *nrhs < 0 ? 2 : *lda < at_least_1(*n) ? 4
                         : *ldb < at_least_1(*n) ? 7 : 0, info)) return;
    BLAS(getrf)(n, n, a, lda, ipiv, info);
    if (*info == 0) BLAS(getrs)("N", n, nrhs, a, lda, ipiv, b, ldb, info, 1);
}

void F77(posv)(GPB_POSV_PARAMS(T, INT))
{
    if (BAD_LAPACK(posv, !letter_of("UL", uplo) ? 1 : *n < 0 ? 2 : *nrhs < 0 ? 3 : *lda < at_least_1(*n) ? 5
                         : *ldb < at_least_1(*n) ? 7 : 0, info)) return;
    BLAS(potrf)(uplo, n, a, lda, info, 1);
    if (*info == 0) BLAS(potrs)(uplo, n, nrhs, a, lda, b, ldb, info, 1);
}

#ifdef MIXED
/* dsgesv, zcgesv, dsposv, zcposv. Factors of single precision would save little time here, so A's are of its
   own precision, which netlib's routines may choose, too. */
enum { LOCAL(BY_FULL_PRECISION) = -1 };        /* netlib's iter of that */
#define MIXED_NAME(stem) TEXT(P) TEXT(MIXED) #stem
#define MIXED_F77(stem) F77_OF(P, PASTE(MIXED, stem, , ))
#define BAD_MIXED(stem, number) \
    (*info = -(INT)(number), gpb_embedded_bad(WIDTH, MIXED_NAME(stem), -*info))

static void LOCAL(copy_columns)(INT n, INT cols, const T *from, INT ld_from, T *to, INT ld_to)
{
    for (int64_t j = 0; j < cols; j++)
        memcpy(to + j * ld_to, from + j * ld_from, (size_t)n * sizeof *to);
}

void MIXED_F77(gesv)(GPB_REFINED_GESV_PARAMS(T, INT, MIXED_RWORK))
{
    (void)work, (void)swork;
    *iter = 0;
    if (BAD_MIXED(gesv, *n < 0 ? 1 : *nrhs < 0 ? 2 : *lda < at_least_1(*n) ? 4 : *ldb < at_least_1(*n) ? 7
                        : *ldx < at_least_1(*n) ? 9 : 0) || *n == 0) return;
    *iter = LOCAL(BY_FULL_PRECISION);
    BLAS(getrf)(n, n, a, lda, ipiv, info);
    if (*info) return;
    LOCAL(copy_columns)(*n, *nrhs, b, *ldb, x, *ldx);
    BLAS(getrs)("N", n, nrhs, a, lda, ipiv, x, ldx, info, 1);
}

void MIXED_F77(posv)(GPB_REFINED_POSV_PARAMS(T, INT, MIXED_RWORK))
{
    (void)work, (void)swork;
    *iter = 0;
    if (BAD_MIXED(posv, !letter_of("UL", uplo) ? 1 : *n < 0 ? 2 : *nrhs < 0 ? 3 : *lda < at_least_1(*n) ? 5
                        : *ldb < at_least_1(*n) ? 7 : *ldx < at_least_1(*n) ? 9 : 0) || *n == 0) return;
    *iter = LOCAL(BY_FULL_PRECISION);
    BLAS(potrf)(uplo, n, a, lda, info, 1);
    if (*info) return;
    LOCAL(copy_columns)(*n, *nrhs, b, *ldb, x, *ldx);
    BLAS(potrs)(uplo, n, nrhs, a, lda, x, ldx, info, 1);
}
#undef BAD_MIXED
#undef MIXED_F77
#undef MIXED_NAME
#endif

void F77(lauum)(GPB_LAUUM_PARAMS(T, INT))
{
    const int u = letter_of("UL", uplo);
    if (BAD_LAPACK(lauum, !u ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 4 : 0, info)) return;
    const gpb_factor f = LOCAL(matrix)(NAME(lauum), (char)u, *n, *n, a, *lda, NULL);
    gpb_lapack_square(&f, &on_host);
}

void F77(potri)(GPB_POTRI_PARAMS(T, INT))
{
    const int u = letter_of("UL", uplo);
    if (BAD_LAPACK(potri, !u ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 4 : 0, info)) return;
    const gpb_factor f = LOCAL(matrix)(NAME(potri), (char)u, *n, *n, a, *lda, NULL);
    *info = (INT)gpb_lapack_invert_cholesky(&f, &on_host);
}

static gpb_inverse LOCAL(triangle)(const char *symbol, int uplo, int diag, INT n, const T *a, INT lda)
{
    return (gpb_inverse){ .symbol = symbol, .type = TYPE_OF_P, .width = WIDTH, .uplo = (char)uplo,
                           .diag = (char)diag, .n = n, .a = (void *)(uintptr_t)a, .lda = lda };
}

void F77(trtri)(GPB_TRTRI_PARAMS(T, INT))
{
    const int u = letter_of("UL", uplo), d = letter_of("NU", diag);
    if (BAD_LAPACK(trtri, !u ? 1 : !d ? 2 : *n < 0 ? 3 : *lda < at_least_1(*n) ? 5 : 0, info)) return;
    const gpb_inverse t = LOCAL(triangle)(NAME(trtri), u, d, *n, a, *lda);
    *info = (INT)gpb_lapack_invert(&t, &on_host);
}

void F77(trtrs)(GPB_TRTRS_PARAMS(T, INT))
{
    const int u = letter_of("UL", uplo), t = letter_of("NTC", trans), d = letter_of("NU", diag);
    if (BAD_LAPACK(trtrs, !u ? 1 : !t ? 2 : !d ? 3 : *n < 0 ? 4 : *nrhs < 0 ? 5 : *lda < at_least_1(*n) ? 7
                          : *ldb < at_least_1(*n) ? 9 : 0, info)) return;
    *info = (INT)gpb_lapack_triangular(&(gpb_triangular){
        .symbol = NAME(trtrs), .solves = true, .type = TYPE_OF_P, .width = WIDTH, .side = 'L',
        .uplo = (char)u, .trans = (char)t, .diag = (char)d, .m = *n, .n = *nrhs, .alpha = 1, .a = a,
        .lda = *lda, .b = b, .ldb = *ldb }, &on_host);
}

void F77(getri)(GPB_GETRI_PARAMS(T, INT))
{
    const bool asks = *lwork == -1;
    if (BAD_LAPACK(getri, *n < 0 ? 1 : *lda < at_least_1(*n) ? 3 : *lwork < at_least_1(*n) && !asks ? 6 : 0,
                   info)) return;
    *work = (T)(at_least_1(*n) * (*n > LEAF ? LEAF : 1));
    if (asks) return;
    const T best = *work;
    const gpb_factor lu = LOCAL(matrix)(NAME(getri), 'G', *n, *n, a, *lda, ipiv);
    *info = (INT)gpb_lapack_invert_lu(&lu, work, *lwork / at_least_1(*n), &on_host);
    *work = best;
}

void F77(laswp)(GPB_LASWP_PARAMS(T, INT))
{
    enum { COLUMNS = 32 };               /* at once: their rows' cache lines stay */
    const int64_t first = *k1, last = *k2, step = *incx > 0 ? *incx : -(int64_t)*incx;
    for (int64_t j = 0; j < *n && step; j += COLUMNS)
        for (int64_t i = 0; i <= last - first; i++) {
            const int64_t row = *incx > 0 ? first + i : last - i;
            const int64_t other = ipiv[first + (row - first) * step - 1];
            exchange_rows(min(COLUMNS, *n - j), a + j * *lda, *lda, row - 1, other - 1);
        }
}

/* What gecon and pocon do after their arguments are found to be legal. */
static void LOCAL(condition)(const gpb_factor *f, bool of_rows, R norm, R *rcond, T *work, void *other_work)
{
    *rcond = f->n == 0 ? 1 : 0;
    if (f->n == 0 || norm == 0) return;
    if (isfinite(norm)) *rcond = reciprocal_condition(f, of_rows, norm, work, other_work);
    else if (isnan(norm)) *rcond = norm;
}

void F77(gecon)(GPB_GECON_PARAMS(T, R, INT))
{
    const char one = *norm == '1' ? 'O' : (char)letter_of("OI", norm);
    if (BAD_LAPACK(gecon, !one ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 4 : *anorm < 0 ? 5 : 0, info))
        return;
    const gpb_factor f = LOCAL(matrix)(NAME(gecon), 'G', *n, *n, a, *lda, NULL);
    LOCAL(condition)(&f, one == 'I', *anorm, rcond, work, other_work);
    /* From some version after 3.11.0 on: NaN and infinite norms are illegal, but not reported to xerbla. */
    if (f.n) *info = !isfinite(*anorm) ? -5 : isnan(*rcond) ? 1 : 0;
}

void F77(pocon)(GPB_POCON_PARAMS(T, R, INT))
{
    const int u = letter_of("UL", uplo);
    if (BAD_LAPACK(pocon, !u ? 1 : *n < 0 ? 2 : *lda < at_least_1(*n) ? 4 : *anorm < 0 ? 5 : 0, info))
        return;
    const gpb_factor f = LOCAL(matrix)(NAME(pocon), (char)u, *n, *n, a, *lda, NULL);
    LOCAL(condition)(&f, false, *anorm, rcond, work, other_work);
}
