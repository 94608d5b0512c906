/* SPDX-License-Identifier: MIT */
/* Level 3, Fortran, and the batches: argument checks in netlib's order, quick returns, then the
   bodies of embedded/matmul.h. */

/* The number of the illegal argument of a GEMM, 0 if all are good. */
static int LOCAL(gemm_info)(const char *transa, const char *transb, INT m, INT n, INT k, INT lda,
                            INT ldb, INT ldc)
{
    int ta = letter_of("NTC", transa), tb = letter_of("NTC", transb);
    return !ta ? 1 : !tb ? 2 : m < 0 ? 3 : n < 0 ? 4 : k < 0 ? 5 : lda < at_least_1(ta == 'N' ? m : k) ? 8
         : ldb < at_least_1(tb == 'N' ? k : n) ? 10 : ldc < at_least_1(m) ? 13 : 0;
}

void F77(gemm)(GPB_F77_GEMM_PARAMS(T, INT))
{
    if (BAD(gemm, LOCAL(gemm_info)(transa, transb, *m, *n, *k, *lda, *ldb, *ldc))) return;
    scale_matrix('G', *m, *n, *beta, false, c, *ldc);
    if (*alpha == 0 || *k == 0 || *m == 0) return;
    operand left = op_of(letter_of("NTC", transa), a, *lda), right = op_of(letter_of("NTC", transb), b, *ldb);
    multiply(*m, *n, *k, *alpha, &left, &right, false, &(target){c, 1, *ldc, 'G'});
}

#if COMPLEX
/* The exported gemm_ may be faster than our body, and is at least as accurate as three real products. */
void F77(gemm3m)(GPB_F77_GEMM_PARAMS(T, INT))
{
    if (BAD(gemm3m, LOCAL(gemm_info)(transa, transb, *m, *n, *k, *lda, *ldb, *ldc))) return;
    BLAS(gemm)(GPB_F77_GEMM_ARGS, 1, 1);
}
#endif

/* One triangle of a product: GEMMTR in netlib, GEMMT elsewhere. */
static void LOCAL(gemmtr)(const char *name, GPB_F77_GEMMTR_PARAMS(T, INT))
{
    int u = letter_of("UL", uplo), ta = letter_of("NTC", transa), tb = letter_of("NTC", transb);
    int info = !u                                       ? 1
               : !ta                                    ? 2
               : !tb                                    ? 3
               : *n < 0                                 ? 4
               : *k < 0                                 ? 5
               : *lda < at_least_1(ta == 'N' ? *n : *k) ? 8
               : *ldb < at_least_1(tb == 'N' ? *k : *n) ? 10
               : *ldc < at_least_1(*n)                  ? 13
                                                        : 0;
    if (gpb_embedded_bad(WIDTH, name, info)) return;
    scale_matrix(u, *n, *n, *beta, false, c, *ldc);
    if (*alpha == 0) return;
    operand left = op_of(ta, a, *lda), right = op_of(tb, b, *ldb);
    multiply(*n, *n, *k, *alpha, &left, &right, false, &(target){c, 1, *ldc, u});
}

void F77(gemmtr)(GPB_F77_GEMMTR_PARAMS(T, INT)) { LOCAL(gemmtr)(NAME(gemmtr), GPB_F77_GEMMTR_ARGS); }
void F77(gemmt)(GPB_F77_GEMMTR_PARAMS(T, INT)) { LOCAL(gemmtr)(NAME(gemmt), GPB_F77_GEMMTR_ARGS); }

#define SYMM(stem, hermitian)                                                                               \
    void F77(stem)(GPB_F77_SYMM_PARAMS(T, INT))                                                             \
    {                                                                                                       \
        int s = letter_of("LR", side), u = letter_of("UL", uplo);                                           \
        if (BAD(stem, !s ? 1 : !u ? 2 : *m < 0 ? 3 : *n < 0 ? 4 : *lda < at_least_1(s == 'L' ? *m : *n) ? 7 \
                      : *ldb < at_least_1(*m) ? 9 : *ldc < at_least_1(*m) ? 12 : 0)) return;                \
        scale_matrix('G', *m, *n, *beta, false, c, *ldc);                                                   \
        if (*alpha == 0 || *m == 0) return;                                                                 \
        operand symmetric = {a, 1, *lda, false, u}, general = op_of('N', b, *ldb);                          \
        bool left = s == 'L';                                                                               \
        multiply(*m, *n, left ? *m : *n, *alpha, left ? &symmetric : &general,                              \
                 left ? &general : &symmetric, hermitian, &(target){c, 1, *ldc, 'G'});                      \
    }
SYMM(symm, false)
#if COMPLEX
SYMM(hemm, true)
#endif

/* C = alpha op(A) op(A)^T + beta C on a triangle. Hermitian: op(A)^H, real alpha and beta, and a real
   diagonal. */
static int LOCAL(syrk_info)(const char *letters, const char *uplo, const char *trans, INT n, INT k, INT lda,
                            INT ldc)
{
    int u = letter_of("UL", uplo), t = letter_of(letters, trans);
    return !u ? 1 : !t ? 2 : n < 0 ? 3 : k < 0 ? 4 : lda < at_least_1(t == 'N' ? n : k) ? 7
         : ldc < at_least_1(n) ? 10 : 0;
}

#define SYRK(stem, letters, hermitian, S)                                                                   \
    void F77(stem)(GPB_F77_SYRK_PARAMS(T, S, INT))                                                          \
    {                                                                                                       \
        int u = letter_of("UL", uplo), t = letter_of(letters, trans);                                       \
        if (BAD(stem, LOCAL(syrk_info)(letters, uplo, trans, *n, *k, *lda, *ldc))) return;                  \
        if ((*alpha == 0 || *k == 0) && *beta == 1) return;                                                 \
        scale_matrix(u, *n, *n, *beta, hermitian, c, *ldc);                                                 \
        operand left = op_of(t, a, *lda), right = transposed(hermitian ? conjugated(left) : left);          \
        if (*alpha != 0) multiply(*n, *n, *k, *alpha, &left, &right, false, &(target){c, 1, *ldc, u});      \
        if (hermitian) make_diagonal_real(&(columns){FULL, c, *n, *n, *n, *ldc});                           \
    }

/* C = alpha op(A) op(B)^T + alpha op(B) op(A)^T + beta C. Hermitian: ^H, conj(alpha) in the second product,
   and real beta. */
#define SYR2K(stem, letters, hermitian, S)                                                              \
    void F77(stem)(GPB_F77_SYR2K_PARAMS(T, S, INT))                                                     \
    {                                                                                                   \
        int u = letter_of("UL", uplo), t = letter_of(letters, trans);                                   \
        int64_t rows = at_least_1(t == 'N' ? *n : *k);                                                  \
        if (BAD(stem, !u ? 1 : !t ? 2 : *n < 0 ? 3 : *k < 0 ? 4 : *lda < rows ? 7 : *ldb < rows ? 9     \
                      : *ldc < at_least_1(*n) ? 12 : 0)) return;                                        \
        if ((*alpha == 0 || *k == 0) && *beta == 1) return;                                             \
        scale_matrix(u, *n, *n, *beta, hermitian, c, *ldc);                                             \
        operand a1 = op_of(t, a, *lda), a2 = transposed(hermitian ? conjugated(a1) : a1);               \
        operand b1 = op_of(t, b, *ldb), b2 = transposed(hermitian ? conjugated(b1) : b1);               \
        target to = {c, 1, *ldc, u};                                                                    \
        if (*alpha != 0) multiply(*n, *n, *k, *alpha, &a1, &b2, false, &to);                            \
        if (*alpha != 0) multiply(*n, *n, *k, hermitian ? CONJ(*alpha) : *alpha, &b1, &a2, false, &to); \
        if (hermitian) make_diagonal_real(&(columns){FULL, c, *n, *n, *n, *ldc});                       \
    }
SYRK(syrk, SYMMETRIC_LETTERS, false, T)
SYR2K(syr2k, SYMMETRIC_LETTERS, false, T)
#if COMPLEX
SYRK(herk, "NC", true, R)
SYR2K(her2k, "NC", true, R)
#endif

static int LOCAL(trsm_info)(const char *side, const char *uplo, const char *trans, const char *diag, INT m,
                            INT n, INT lda, INT ldb)
{
    int s = letter_of("LR", side);
    return !s ? 1 : !letter_of("UL", uplo) ? 2 : !letter_of("NTC", trans) ? 3 : !letter_of("NU", diag) ? 4
         : m < 0 ? 5 : n < 0 ? 6 : lda < at_least_1(s == 'L' ? m : n) ? 9 : ldb < at_least_1(m) ? 11 : 0;
}

/* B = alpha op(A) B or, from the right, B^T = alpha op(A)^T B^T; or with op(A)^-1. */
#define TRMM(stem, solve)                                                                                    \
    void F77(stem)(GPB_F77_TRSM_PARAMS(T, INT))                                                              \
    {                                                                                                        \
        int s = letter_of("LR", side), u = letter_of("UL", uplo), t = letter_of("NTC", transa),              \
            d = letter_of("NU", diag);                                                                       \
        bool left = s == 'L';                                                                                \
        if (BAD(stem, LOCAL(trsm_info)(side, uplo, transa, diag, *m, *n, *lda, *ldb))) return;               \
        scale_matrix('G', *m, *n, *alpha, false, b, *ldb);                                                   \
        if (*alpha == 0 || *m == 0 || *n == 0) return;                                                       \
        operand triangle = left ? op_of(t, a, *lda) : transposed(op_of(t, a, *lda));                         \
        bool upper = (u == 'U') == ((t == 'N') == left);                                                     \
        if (left) triangular_sweep(solve, upper, d == 'U', *m, *n, &triangle, &(target){b, 1, *ldb, 'G'});   \
        else triangular_sweep(solve, upper, d == 'U', *n, *m, &triangle, &(target){b, *ldb, 1, 'G'});        \
    }
TRMM(trmm, false)
TRMM(trsm, true)

/* The batches call the exported gemm_, syrk_ and trsm_, which may be faster than our bodies. */
void F77(gemm_batch)(GPB_F77_GEMM_BATCH_PARAMS(T, INT))
{
    if (BAD(gemm_batch, *group_count < 0 ? 14 : 0)) return;
    for (INT g = 0; g < *group_count; g++) {
        int info = LOCAL(gemm_info)(transa + g, transb + g, m[g], n[g], k[g], lda[g], ldb[g], ldc[g]);
        if (BAD(gemm_batch, info ? info : group_size[g] < 0 ? 15 : 0)) return;
    }
    for (INT g = 0; g < *group_count; g++)
        for (INT l = 0; l < group_size[g]; l++)
            BLAS(gemm)(transa + g, transb + g, m + g, n + g, k + g, alpha + g, *a++, lda + g, *b++,
                       ldb + g, beta + g, *c++, ldc + g, 1, 1);
}

void F77(gemm_batch_strided)(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(T, INT))
{
    int info = LOCAL(gemm_info)(transa, transb, *m, *n, *k, *lda, *ldb, *ldc);
    if (BAD(gemm_batch_strided, info == 10 ? 11 : info == 13 ? 15 : info ? info : *batch_size < 0 ? 17 : 0))
        return;
    for (INT l = 0; l < *batch_size; l++)
        BLAS(gemm)(transa, transb, m, n, k, alpha, a + (int64_t)l * *stridea, lda,
                   b + (int64_t)l * *strideb, ldb, beta, c + (int64_t)l * *stridec, ldc, 1, 1);
}

void F77(syrk_batch)(GPB_F77_SYRK_BATCH_PARAMS(T, INT))
{
    if (BAD(syrk_batch, *group_count < 0 ? 11 : 0)) return;
    for (INT g = 0; g < *group_count; g++) {
        int info = LOCAL(syrk_info)(SYMMETRIC_LETTERS, uplo + g, trans + g, n[g], k[g], lda[g], ldc[g]);
        if (BAD(syrk_batch, info ? info : group_size[g] < 0 ? 12 : 0)) return;
    }
    for (INT g = 0; g < *group_count; g++)
        for (INT l = 0; l < group_size[g]; l++)
            BLAS(syrk)(uplo + g, trans + g, n + g, k + g, alpha + g, *a++, lda + g, beta + g, *c++, ldc + g,
                       1, 1);
}

void F77(syrk_batch_strided)(GPB_F77_SYRK_BATCH_STRIDED_PARAMS(T, INT))
{
    int info = LOCAL(syrk_info)(SYMMETRIC_LETTERS, uplo, trans, *n, *k, *lda, *ldc);
    if (BAD(syrk_batch_strided, info == 10 ? 11 : info ? info : *batch_size < 0 ? 13 : 0)) return;
    for (INT l = 0; l < *batch_size; l++)
        BLAS(syrk)(uplo, trans, n, k, alpha, a + (int64_t)l * *stridea, lda, beta,
                   c + (int64_t)l * *stridec, ldc, 1, 1);
}

void F77(trsm_batch)(GPB_F77_TRSM_BATCH_PARAMS(T, INT))
{
    if (BAD(trsm_batch, *group_count < 0 ? 12 : 0)) return;
    for (INT g = 0; g < *group_count; g++) {
        int info = LOCAL(trsm_info)(side + g, uplo + g, transa + g, diag + g, m[g], n[g], lda[g], ldb[g]);
        if (BAD(trsm_batch, info ? info : group_size[g] < 0 ? 13 : 0)) return;
    }
    for (INT g = 0; g < *group_count; g++)
        for (INT l = 0; l < group_size[g]; l++)
            BLAS(trsm)(side + g, uplo + g, transa + g, diag + g, m + g, n + g, alpha + g, *a++, lda + g, *b++,
                       ldb + g, 1, 1, 1, 1);
}

void F77(trsm_batch_strided)(GPB_F77_TRSM_BATCH_STRIDED_PARAMS(T, INT))
{
    int info = LOCAL(trsm_info)(side, uplo, transa, diag, *m, *n, *lda, *ldb);
    if (BAD(trsm_batch_strided, info == 11 ? 12 : info ? info : *batch_size < 0 ? 14 : 0)) return;
    for (INT l = 0; l < *batch_size; l++)
        BLAS(trsm)(side, uplo, transa, diag, m, n, alpha, a + (int64_t)l * *stridea, lda,
                   b + (int64_t)l * *strideb, ldb, 1, 1, 1, 1);
}
