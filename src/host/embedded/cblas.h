/* SPDX-License-Identifier: MIT */
/* CBLAS. Each entry turns row-major into column-major and enumerators into letters, and calls the exported
   Fortran name. That function's xerbla_ reports other illegal arguments, with Fortran's numbers. If Fortran's
   letters cannot express the call (CONJUGATED), our own body is called. */

#define EITHER(stem, own) ((own) ? (__typeof__(&BLAS(stem)))(void *)F77(stem) : BLAS(stem))

/* Level 1 */

void CBLAS(axpy)(INT n, SCALAR alpha, const T *x, INT incx, T *y, INT incy)
{
    BLAS(axpy)(&n, BY_ADDRESS(alpha), x, &incx, y, &incy);
}

void CBLAS(copy)(INT n, const T *x, INT incx, T *y, INT incy) { BLAS(copy)(&n, x, &incx, y, &incy); }
void CBLAS(swap)(INT n, T *x, INT incx, T *y, INT incy) { BLAS(swap)(&n, x, &incx, y, &incy); }
void CBLAS(scal)(INT n, SCALAR alpha, T *x, INT incx) { BLAS(scal)(&n, BY_ADDRESS(alpha), x, &incx); }
void CBLAS(rotg)(T *a, T *b, R *c, T *s) { BLAS(rotg)(a, b, c, s); }
R CBLAS_OF(RP, asum)(INT n, const T *x, INT incx) { return BLAS_OF(RP, asum)(&n, x, &incx); }
R CBLAS_OF(RP, nrm2)(INT n, const T *x, INT incx) { return BLAS_OF(RP, nrm2)(&n, x, &incx); }
void CBLAS_OF(PR, rot)(INT n, T *x, INT incx, T *y, INT incy, R c, R s)
{
    BLAS_OF(PR, rot)(&n, x, &incx, y, &incy, &c, &s);
}

/* Counted from 0, also if there is nothing to find. */
size_t CBLAS_OF(IP, amax)(INT n, const T *x, INT incx)
{
    INT at = BLAS_OF(IP, amax)(&n, x, &incx);
    return at ? at - 1 : 0;
}

#if COMPLEX
void CBLAS_OF(PR, scal)(INT n, R alpha, T *x, INT incx) { BLAS_OF(PR, scal)(&n, &alpha, x, &incx); }
R CBLAS_OF(RR, cabs1)(const T *x) { return BLAS_OF(RR, cabs1)(x); }

void CBLAS(dotu_sub)(INT n, const T *x, INT incx, const T *y, INT incy, T *result)
{
    *result = BLAS(dotu)(&n, x, &incx, y, &incy);
}

void CBLAS(dotc_sub)(INT n, const T *x, INT incx, const T *y, INT incy, T *result)
{
    *result = BLAS(dotc)(&n, x, &incx, y, &incy);
}
#else
R CBLAS(dot)(INT n, const R *x, INT incx, const R *y, INT incy) { return BLAS(dot)(&n, x, &incx, y, &incy); }
void CBLAS(rotm)(INT n, R *x, INT incx, R *y, INT incy, const R *param)
{
    BLAS(rotm)(&n, x, &incx, y, &incy, param);
}
void CBLAS(rotmg)(R *d1, R *d2, R *x1, R y1, R *param) { BLAS(rotmg)(d1, d2, x1, &y1, param); }
#endif
#if SINGLE
double CBLAS_OF(ds, dot)(INT n, const float *x, INT incx, const float *y, INT incy)
{
    return BLAS_OF(ds, dot)(&n, x, &incx, y, &incy);
}

float CBLAS_OF(sds, dot)(INT n, float sb, const float *x, INT incx, const float *y, INT incy)
{
    return BLAS_OF(sds, dot)(&n, &sb, x, &incx, y, &incy);
}
#endif

/* Level 2 */

void CBLAS(gemv)(int layout, int trans, INT m, INT n, SCALAR alpha, const T *a, INT lda, const T *x, INT incx,
                 SCALAR beta, T *y, INT incy)
{
    if (!LEGAL(gemv, "LT", layout, trans)) return;
    bool row = layout == ROW_MAJOR;
    char t = trans_letter(layout, trans);
    EITHER(gemv, t & CONJUGATED)(&t, row ? &n : &m, row ? &m : &n, BY_ADDRESS(alpha), a, &lda, x, &incx,
                                 BY_ADDRESS(beta), y, &incy, 1);
}

void CBLAS(gbmv)(int layout, int trans, INT m, INT n, INT kl, INT ku, SCALAR alpha, const T *a, INT lda,
                 const T *x, INT incx, SCALAR beta, T *y, INT incy)
{
    if (!LEGAL(gbmv, "LT", layout, trans)) return;
    bool row = layout == ROW_MAJOR;
    char t = trans_letter(layout, trans);
    EITHER(gbmv, t & CONJUGATED)(&t, row ? &n : &m, row ? &m : &n, row ? &ku : &kl, row ? &kl : &ku,
                                 BY_ADDRESS(alpha), a, &lda, x, &incx, BY_ADDRESS(beta), y, &incy, 1);
}

void CBLAS(SYMMETRIC(mv))(int layout, int uplo, INT n, SCALAR alpha, const T *a, INT lda, const T *x,
                          INT incx, SCALAR beta, T *y, INT incy)
{
    if (!LEGAL(SYMMETRIC(mv), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    EITHER(SYMMETRIC(mv), u & CONJUGATED)(&u, &n, BY_ADDRESS(alpha), a, &lda, x, &incx, BY_ADDRESS(beta),
                                          y, &incy, 1);
}

void CBLAS(SYMMETRIC_BAND(mv))(int layout, int uplo, INT n, INT k, SCALAR alpha, const T *a, INT lda,
                               const T *x, INT incx, SCALAR beta, T *y, INT incy)
{
    if (!LEGAL(SYMMETRIC_BAND(mv), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    EITHER(SYMMETRIC_BAND(mv), u & CONJUGATED)(&u, &n, &k, BY_ADDRESS(alpha), a, &lda, x, &incx,
                                               BY_ADDRESS(beta), y, &incy, 1);
}

void CBLAS(SYMMETRIC_PACKED(mv))(int layout, int uplo, INT n, SCALAR alpha, const T *a, const T *x, INT incx,
                                 SCALAR beta, T *y, INT incy)
{
    if (!LEGAL(SYMMETRIC_PACKED(mv), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    EITHER(SYMMETRIC_PACKED(mv), u & CONJUGATED)(&u, &n, BY_ADDRESS(alpha), a, x, &incx, BY_ADDRESS(beta),
                                                 y, &incy, 1);
}

#define C_TRIANGULAR(stem)                                                                                  \
    void CBLAS(stem)(int layout, int uplo, int trans, int diag, INT n, const T *a, INT lda, T *x, INT incx) \
    {                                                                                                       \
        if (!LEGAL(stem, "LUTD", layout, uplo, trans, diag)) return;                                        \
        char u = uplo_letter(layout, uplo), t = trans_letter(layout, trans), d = letter(diag);              \
        EITHER(stem, t & CONJUGATED)(&u, &t, &d, &n, a, &lda, x, &incx, 1, 1, 1);                           \
    }
C_TRIANGULAR(trmv)
C_TRIANGULAR(trsv)

#define C_TRIANGULAR_BAND(stem)                                                                    \
    void CBLAS(stem)(int layout, int uplo, int trans, int diag, INT n, INT k, const T *a, INT lda, \
                     T *x, INT incx)                                                               \
    {                                                                                              \
        if (!LEGAL(stem, "LUTD", layout, uplo, trans, diag)) return;                               \
        char u = uplo_letter(layout, uplo), t = trans_letter(layout, trans), d = letter(diag);     \
        EITHER(stem, t & CONJUGATED)(&u, &t, &d, &n, &k, a, &lda, x, &incx, 1, 1, 1);              \
    }
C_TRIANGULAR_BAND(tbmv)
C_TRIANGULAR_BAND(tbsv)

#define C_TRIANGULAR_PACKED(stem)                                                                  \
    void CBLAS(stem)(int layout, int uplo, int trans, int diag, INT n, const T *a, T *x, INT incx) \
    {                                                                                              \
        if (!LEGAL(stem, "LUTD", layout, uplo, trans, diag)) return;                               \
        char u = uplo_letter(layout, uplo), t = trans_letter(layout, trans), d = letter(diag);     \
        EITHER(stem, t & CONJUGATED)(&u, &t, &d, &n, a, x, &incx, 1, 1, 1);                        \
    }
C_TRIANGULAR_PACKED(tpmv)
C_TRIANGULAR_PACKED(tpsv)

/* Row-major x y^T is column-major y x^T. With conj(y) it needs our own body. */
#define C_GER(stem, conj_y)                                                                          \
    void CBLAS(stem)(int layout, INT m, INT n, SCALAR alpha, const T *x, INT incx, const T *y,       \
                     INT incy, T *a, INT lda)                                                        \
    {                                                                                                \
        if (!LEGAL(stem, "L", layout)) return;                                                       \
        if (layout != ROW_MAJOR) BLAS(stem)(&m, &n, BY_ADDRESS(alpha), x, &incx, y, &incy, a, &lda); \
        else if (!conj_y) BLAS(stem)(&n, &m, BY_ADDRESS(alpha), y, &incy, x, &incx, a, &lda);        \
        else LOCAL(rank_one)(NAME(stem), &n, &m, BY_ADDRESS(alpha), y, &incy, true, x, &incx, false, \
                             a, &lda);                                                               \
    }
#if COMPLEX
C_GER(geru, false)
C_GER(gerc, true)
#else
C_GER(ger, false)
#endif

void CBLAS(SYMMETRIC(r))(int layout, int uplo, INT n, R alpha, const T *x, INT incx, T *a, INT lda)
{
    if (!LEGAL(SYMMETRIC(r), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    EITHER(SYMMETRIC(r), u & CONJUGATED)(&u, &n, &alpha, x, &incx, a, &lda, 1);
}

void CBLAS(SYMMETRIC_PACKED(r))(int layout, int uplo, INT n, R alpha, const T *x, INT incx, T *a)
{
    if (!LEGAL(SYMMETRIC_PACKED(r), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    EITHER(SYMMETRIC_PACKED(r), u & CONJUGATED)(&u, &n, &alpha, x, &incx, a, 1);
}

/* Row-major: the vectors change places too. */
void CBLAS(SYMMETRIC(r2))(int layout, int uplo, INT n, SCALAR alpha, const T *x, INT incx, const T *y,
                          INT incy, T *a, INT lda)
{
    if (!LEGAL(SYMMETRIC(r2), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    bool swap = u & CONJUGATED;
    EITHER(SYMMETRIC(r2), swap)(&u, &n, BY_ADDRESS(alpha), swap ? y : x, swap ? &incy : &incx, swap ? x : y,
                                swap ? &incx : &incy, a, &lda, 1);
}

void CBLAS(SYMMETRIC_PACKED(r2))(int layout, int uplo, INT n, SCALAR alpha, const T *x, INT incx,
                                 const T *y, INT incy, T *a)
{
    if (!LEGAL(SYMMETRIC_PACKED(r2), "LU", layout, uplo)) return;
    char u = hermitian_letter(layout, uplo);
    bool swap = u & CONJUGATED;
    EITHER(SYMMETRIC_PACKED(r2), swap)(&u, &n, BY_ADDRESS(alpha), swap ? y : x,
                                       swap ? &incy : &incx, swap ? x : y, swap ? &incx : &incy, a, 1);
}

/* Level 3: C^T = op(B)^T op(A)^T, and so on. */

#define C_GEMM(stem)                                                                                       \
    void CBLAS(stem)(GPB_CBLAS_GEMM_PARAMS(T, SCALAR, INT))                                                \
    {                                                                                                      \
        if (!LEGAL(stem, "LTT", layout, transa, transb)) return;                                           \
        char ta = letter(transa), tb = letter(transb);                                                     \
        if (layout == ROW_MAJOR)                                                                           \
            BLAS(stem)(&tb, &ta, &n, &m, &k, BY_ADDRESS(alpha), b, &ldb, a, &lda, BY_ADDRESS(beta), c,     \
                       &ldc, 1, 1);                                                                        \
        else BLAS(stem)(&ta, &tb, &m, &n, &k, BY_ADDRESS(alpha), a, &lda, b, &ldb, BY_ADDRESS(beta), c,    \
                        &ldc, 1, 1);                                                                       \
    }
C_GEMM(gemm)
#if COMPLEX
C_GEMM(gemm3m)
#endif

#define C_GEMMTR(stem)                                                                                 \
    void CBLAS(stem)(GPB_CBLAS_GEMMTR_PARAMS(T, SCALAR, INT))                                          \
    {                                                                                                  \
        if (!LEGAL(stem, "LUTT", layout, uplo, transa, transb)) return;                                \
        char u = uplo_letter(layout, uplo), ta = letter(transa), tb = letter(transb);                  \
        if (layout == ROW_MAJOR)                                                                       \
            BLAS(stem)(&u, &tb, &ta, &n, &k, BY_ADDRESS(alpha), b, &ldb, a, &lda, BY_ADDRESS(beta), c, \
                       &ldc, 1, 1, 1);                                                                 \
        else BLAS(stem)(&u, &ta, &tb, &n, &k, BY_ADDRESS(alpha), a, &lda, b, &ldb, BY_ADDRESS(beta),   \
                        c, &ldc, 1, 1, 1);                                                             \
    }
C_GEMMTR(gemmtr)
C_GEMMTR(gemmt)

#define C_SYMM(stem)                                                       \
    void CBLAS(stem)(GPB_CBLAS_SYMM_PARAMS(T, SCALAR, INT))                \
    {                                                                      \
        if (!LEGAL(stem, "LSU", layout, side, uplo)) return;               \
        char s = side_letter(layout, side), u = uplo_letter(layout, uplo); \
        bool row = layout == ROW_MAJOR;                                    \
        BLAS(stem)(&s, &u, row ? &n : &m, row ? &m : &n, BY_ADDRESS(alpha), a, &lda, b, &ldb, \
                   BY_ADDRESS(beta), c, &ldc, 1, 1); \
    }
C_SYMM(symm)

#define C_SYRK(stem, transposed, S, ADDRESS)                                                      \
    void CBLAS(stem)(GPB_CBLAS_SYRK_PARAMS(T, S, INT))                                            \
    {                                                                                             \
        if (!LEGAL(stem, "LUT", layout, uplo, trans)) return;                                     \
        char u = uplo_letter(layout, uplo), t = rank_k_letter(layout, trans, transposed);         \
        BLAS(stem)(&u, &t, &n, &k, ADDRESS(alpha), a, &lda, ADDRESS(beta), c, &ldc, 1, 1);        \
    }

/* Row-major HER2K: the products change places, so alpha is conjugated. */
#define C_SYR2K(stem, transposed, S, ADDRESS, hermitian)                                               \
    void CBLAS(stem)(GPB_CBLAS_SYR2K_PARAMS(T, SCALAR, S, INT))                                        \
    {                                                                                                  \
        if (!LEGAL(stem, "LUT", layout, uplo, trans)) return;                                          \
        char u = uplo_letter(layout, uplo), t = rank_k_letter(layout, trans, transposed);              \
        T by = conj_if(hermitian && layout == ROW_MAJOR, *BY_ADDRESS(alpha));                          \
        BLAS(stem)(&u, &t, &n, &k, &by, a, &lda, b, &ldb, ADDRESS(beta), c, &ldc, 1, 1);               \
    }
#define OF_REAL(x) (&(x))
C_SYRK(syrk, 'T', SCALAR, BY_ADDRESS)
C_SYR2K(syr2k, 'T', SCALAR, BY_ADDRESS, false)
#if COMPLEX
C_SYMM(hemm)
C_SYRK(herk, 'C', R, OF_REAL)
C_SYR2K(her2k, 'C', R, OF_REAL, true)
#endif

#define C_TRMM(stem)                                                                                     \
    void CBLAS(stem)(GPB_CBLAS_TRSM_PARAMS(T, SCALAR, INT))                                              \
    {                                                                                                    \
        if (!LEGAL(stem, "LSUTD", layout, side, uplo, transa, diag)) return;                             \
        char s = side_letter(layout, side), u = uplo_letter(layout, uplo), t = letter(transa),           \
             d = letter(diag);                                                                           \
        bool row = layout == ROW_MAJOR;                                                                  \
        BLAS(stem)(&s, &u, &t, &d, row ? &n : &m, row ? &m : &n, BY_ADDRESS(alpha), a, &lda, b, &ldb,    \
                   1, 1, 1, 1);                                                                          \
    }
C_TRMM(trmm)
C_TRMM(trsm)

/* Batches */

void CBLAS(gemm_batch)(GPB_CBLAS_GEMM_BATCH_PARAMS(T, INT))
{
    const T *const *a_end = a;
    if (!LEGAL(gemm_batch, "L", layout)) return;
    if (BAD(gemm_batch, group_count < 0 ? 14 : 0)) return;
    for (INT g = 0; g < group_count; g++) {
        if (!LEGAL(gemm_batch, "LTT", layout, transa[g], transb[g])) return;
        char ta = letter(transa[g]), tb = letter(transb[g]);
        int info = layout == ROW_MAJOR
                 ? LOCAL(gemm_info)(&tb, &ta, n[g], m[g], k[g], ldb[g], lda[g], ldc[g])
                 : LOCAL(gemm_info)(&ta, &tb, m[g], n[g], k[g], lda[g], ldb[g], ldc[g]);
        if (BAD(gemm_batch, info ? info : group_size[g] < 0 ? 15 : 0)) return;
    }
    for (INT g = 0; g < group_count; g++)
        for (a_end += group_size[g]; a < a_end; a++, b++, c++)
            CBLAS(gemm)(layout, transa[g], transb[g], m[g], n[g], k[g], AT(alpha + g), *a, lda[g], *b,
                        ldb[g], AT(beta + g), *c, ldc[g]);
}

void CBLAS(gemm_batch_strided)(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(T, SCALAR, INT))
{
    if (!LEGAL(gemm_batch_strided, "LTT", layout, transa, transb)) return;
    char ta = letter(transa), tb = letter(transb);
    if (layout == ROW_MAJOR)
        BLAS(gemm_batch_strided)(&tb, &ta, &n, &m, &k, BY_ADDRESS(alpha), b, &ldb, &strideb, a, &lda,
                                 &stridea, BY_ADDRESS(beta), c, &ldc,
                                 &stridec, &batch_size, 1, 1);
    else BLAS(gemm_batch_strided)(&ta, &tb, &m, &n, &k, BY_ADDRESS(alpha), a, &lda, &stridea, b, &ldb,
                                  &strideb, BY_ADDRESS(beta), c, &ldc,
                                  &stridec, &batch_size, 1, 1);
}

void CBLAS(syrk_batch)(GPB_CBLAS_SYRK_BATCH_PARAMS(T, INT))
{
    const T *const *a_end = a;
    if (!LEGAL(syrk_batch, "L", layout)) return;
    if (BAD(syrk_batch, group_count < 0 ? 11 : 0)) return;
    for (INT g = 0; g < group_count; g++) {
        if (!LEGAL(syrk_batch, "LUT", layout, uplo[g], trans[g])) return;
        char u = uplo_letter(layout, uplo[g]), t = rank_k_letter(layout, trans[g], 'T');
        int info = LOCAL(syrk_info)(SYMMETRIC_LETTERS, &u, &t, n[g], k[g], lda[g], ldc[g]);
        if (BAD(syrk_batch, info ? info : group_size[g] < 0 ? 12 : 0)) return;
    }
    for (INT g = 0; g < group_count; g++)
        for (a_end += group_size[g]; a < a_end; a++, c++)
            CBLAS(syrk)(layout, uplo[g], trans[g], n[g], k[g], AT(alpha + g), *a, lda[g], AT(beta + g), *c,
                        ldc[g]);
}

void CBLAS(syrk_batch_strided)(GPB_CBLAS_SYRK_BATCH_STRIDED_PARAMS(T, SCALAR, INT))
{
    if (!LEGAL(syrk_batch_strided, "LUT", layout, uplo, trans)) return;
    char u = uplo_letter(layout, uplo), t = rank_k_letter(layout, trans, 'T');
    BLAS(syrk_batch_strided)(&u, &t, &n, &k, BY_ADDRESS(alpha), a, &lda, &stridea, BY_ADDRESS(beta), c, &ldc,
                             &stridec, &batch_size, 1, 1);
}

void CBLAS(trsm_batch)(GPB_CBLAS_TRSM_BATCH_PARAMS(T, INT))
{
    const T *const *a_end = a;
    const bool row = layout == ROW_MAJOR;
    if (!LEGAL(trsm_batch, "L", layout)) return;
    if (BAD(trsm_batch, group_count < 0 ? 12 : 0)) return;
    for (INT g = 0; g < group_count; g++) {
        if (!LEGAL(trsm_batch, "LSUTD", layout, side[g], uplo[g], transa[g], diag[g])) return;
        char s = side_letter(layout, side[g]), u = uplo_letter(layout, uplo[g]), t = letter(transa[g]),
             d = letter(diag[g]);
        int info = LOCAL(trsm_info)(&s, &u, &t, &d, row ? n[g] : m[g], row ? m[g] : n[g], lda[g], ldb[g]);
        if (BAD(trsm_batch, info ? info : group_size[g] < 0 ? 13 : 0)) return;
    }
    for (INT g = 0; g < group_count; g++)
        for (a_end += group_size[g]; a < a_end; a++, b++)
            CBLAS(trsm)(layout, side[g], uplo[g], transa[g], diag[g], m[g], n[g], AT(alpha + g), *a, lda[g],
                        *b, ldb[g]);
}

void CBLAS(trsm_batch_strided)(GPB_CBLAS_TRSM_BATCH_STRIDED_PARAMS(T, SCALAR, INT))
{
    if (!LEGAL(trsm_batch_strided, "LSUTD", layout, side, uplo, transa, diag)) return;
    char s = side_letter(layout, side), u = uplo_letter(layout, uplo), t = letter(transa), d = letter(diag);
    bool row = layout == ROW_MAJOR;
    BLAS(trsm_batch_strided)(&s, &u, &t, &d, row ? &n : &m, row ? &m : &n, BY_ADDRESS(alpha), a, &lda,
                             &stridea, b, &ldb, &strideb, &batch_size, 1, 1, 1, 1);
}
