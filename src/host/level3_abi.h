/* SPDX-License-Identifier: MIT */
/* The parameter lists of Level 3 that have doors, each spelled once, for the doors and the embedded BLAS.
   GPB_F77_x_PARAMS(T, INT) and GPB_CBLAS_x_PARAMS(T, SCALAR, INT) are the text between the parentheses of a
   definition; ..._ARGS are the same names, for a call.
   INT is int32_t or int64_t. T is the element (void in complex doors). SCALAR is how CBLAS passes alpha and
   beta: `float`, `double`, or `const void *` for complex. CBLAS's enumerations are passed as `int`.
   Fortran's hidden string lengths are not in the lists. C callers pass none, so a definition must not read
   them. A call adds `, (size_t)1, (size_t)1` for gemm, symm, syrk and syr2k, three of them for gemmtr, four
   for trsm, and for a batch as many as for one member. */
#ifndef GPB_LEVEL3_ABI_H
#define GPB_LEVEL3_ABI_H

/* C = alpha op(A) op(B) + beta C: gemm, and gemm3m of oneMKL, OpenBLAS and BLIS */
#define GPB_F77_GEMM_PARAMS(T, INT)                                                                   \
    const char *transa, const char *transb, const INT *m, const INT *n, const INT *k, const T *alpha, \
        const T *a, const INT *lda, const T *b, const INT *ldb, const T *beta, T *c, const INT *ldc
#define GPB_F77_GEMM_ARGS transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc

#define GPB_CBLAS_GEMM_PARAMS(T, SCALAR, INT)                                                               \
    int layout, int transa, int transb, INT m, INT n, INT k, SCALAR alpha, const T *a, INT lda, const T *b, \
        INT ldb, SCALAR beta, T *c, INT ldc
#define GPB_CBLAS_GEMM_ARGS layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc

/* The same for one triangle of a square C: gemmtr (netlib 3.12.1), also called gemmt */
#define GPB_F77_GEMMTR_PARAMS(T, INT)                                                                     \
    const char *uplo, const char *transa, const char *transb, const INT *n, const INT *k, const T *alpha, \
        const T *a, const INT *lda, const T *b, const INT *ldb, const T *beta, T *c, const INT *ldc
#define GPB_F77_GEMMTR_ARGS uplo, transa, transb, n, k, alpha, a, lda, b, ldb, beta, c, ldc

#define GPB_CBLAS_GEMMTR_PARAMS(T, SCALAR, INT)                                                    \
    int layout, int uplo, int transa, int transb, INT n, INT k, SCALAR alpha, const T *a, INT lda, \
        const T *b, INT ldb, SCALAR beta, T *c, INT ldc
#define GPB_CBLAS_GEMMTR_ARGS layout, uplo, transa, transb, n, k, alpha, a, lda, b, ldb, beta, c, ldc

/* C = alpha op(A) op(A)^T + beta C on one triangle of C: syrk; herk with op(A)^H. SCALAR is the type of alpha
   and beta, which is real in herk */
#define GPB_F77_SYRK_PARAMS(T, SCALAR, INT)                                                                  \
    const char *uplo, const char *trans, const INT *n, const INT *k, const SCALAR *alpha, const T *a,        \
        const INT *lda, const SCALAR *beta, T *c, const INT *ldc
#define GPB_F77_SYRK_ARGS uplo, trans, n, k, alpha, a, lda, beta, c, ldc

#define GPB_CBLAS_SYRK_PARAMS(T, SCALAR, INT)                                                              \
    int layout, int uplo, int trans, INT n, INT k, SCALAR alpha, const T *a, INT lda, SCALAR beta, T *c,   \
        INT ldc
#define GPB_CBLAS_SYRK_ARGS layout, uplo, trans, n, k, alpha, a, lda, beta, c, ldc

/* C = alpha A B + beta C with a symmetric A, or alpha B A + beta C if it is on the right: symm; hemm with a
   Hermitian A */
#define GPB_F77_SYMM_PARAMS(T, INT)                                                                       \
    const char *side, const char *uplo, const INT *m, const INT *n, const T *alpha, const T *a,           \
        const INT *lda, const T *b, const INT *ldb, const T *beta, T *c, const INT *ldc
#define GPB_F77_SYMM_ARGS side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc

#define GPB_CBLAS_SYMM_PARAMS(T, SCALAR, INT)                                                           \
    int layout, int side, int uplo, INT m, INT n, SCALAR alpha, const T *a, INT lda, const T *b,        \
        INT ldb, SCALAR beta, T *c, INT ldc
#define GPB_CBLAS_SYMM_ARGS layout, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc

/* C = alpha op(A) op(B)^T + alpha op(B) op(A)^T + beta C on one triangle of C: syr2k; her2k with ^H, and
   conj(alpha) in the second product. BETA is the type of beta, which is real in her2k */
#define GPB_F77_SYR2K_PARAMS(T, BETA, INT)                                                                   \
    const char *uplo, const char *trans, const INT *n, const INT *k, const T *alpha, const T *a,             \
        const INT *lda, const T *b, const INT *ldb, const BETA *beta, T *c, const INT *ldc
#define GPB_F77_SYR2K_ARGS uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc

#define GPB_CBLAS_SYR2K_PARAMS(T, SCALAR, BETA, INT)                                                       \
    int layout, int uplo, int trans, INT n, INT k, SCALAR alpha, const T *a, INT lda, const T *b, INT ldb, \
        BETA beta, T *c, INT ldc
#define GPB_CBLAS_SYR2K_ARGS layout, uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc

/* B = alpha op(A)^-1 B or alpha B op(A)^-1: trsm; trmm with op(A). A call of the Fortran name adds four
   lengths */
#define GPB_F77_TRSM_PARAMS(T, INT)                                                                       \
    const char *side, const char *uplo, const char *transa, const char *diag, const INT *m, const INT *n, \
        const T *alpha, const T *a, const INT *lda, T *b, const INT *ldb
#define GPB_F77_TRSM_ARGS side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb

#define GPB_CBLAS_TRSM_PARAMS(T, SCALAR, INT)                                                            \
    int layout, int side, int uplo, int transa, int diag, INT m, INT n, SCALAR alpha, const T *a,        \
        INT lda, T *b, INT ldb
#define GPB_CBLAS_TRSM_ARGS layout, side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb

/* Groups of equal calls (oneMKL): each array has one entry per group, or one address per member, in the order
   of the groups */
#define GPB_F77_GEMM_BATCH_PARAMS(T, INT)                                                                 \
    const char *transa, const char *transb, const INT *m, const INT *n, const INT *k, const T *alpha,     \
        const T *const *a, const INT *lda, const T *const *b, const INT *ldb, const T *beta, T *const *c, \
        const INT *ldc, const INT *group_count, const INT *group_size
#define GPB_F77_GEMM_BATCH_ARGS GPB_F77_GEMM_ARGS, group_count, group_size

#define GPB_CBLAS_GEMM_BATCH_PARAMS(T, INT)                                                                  \
    int layout, const int *transa, const int *transb, const INT *m, const INT *n, const INT *k,              \
        const T *alpha, const T *const *a, const INT *lda, const T *const *b, const INT *ldb, const T *beta, \
        T *const *c, const INT *ldc, INT group_count, const INT *group_size
#define GPB_CBLAS_GEMM_BATCH_ARGS GPB_CBLAS_GEMM_ARGS, group_count, group_size

#define GPB_F77_SYRK_BATCH_PARAMS(T, INT)                                                                 \
    const char *uplo, const char *trans, const INT *n, const INT *k, const T *alpha, const T *const *a,   \
        const INT *lda, const T *beta, T *const *c, const INT *ldc, const INT *group_count,               \
        const INT *group_size
#define GPB_F77_SYRK_BATCH_ARGS GPB_F77_SYRK_ARGS, group_count, group_size

#define GPB_CBLAS_SYRK_BATCH_PARAMS(T, INT)                                                                  \
    int layout, const int *uplo, const int *trans, const INT *n, const INT *k, const T *alpha,               \
        const T *const *a, const INT *lda, const T *beta, T *const *c, const INT *ldc, INT group_count,      \
        const INT *group_size
#define GPB_CBLAS_SYRK_BATCH_ARGS GPB_CBLAS_SYRK_ARGS, group_count, group_size

#define GPB_F77_TRSM_BATCH_PARAMS(T, INT)                                                                 \
    const char *side, const char *uplo, const char *transa, const char *diag, const INT *m, const INT *n, \
        const T *alpha, const T *const *a, const INT *lda, T *const *b, const INT *ldb,                   \
        const INT *group_count, const INT *group_size
#define GPB_F77_TRSM_BATCH_ARGS GPB_F77_TRSM_ARGS, group_count, group_size

#define GPB_CBLAS_TRSM_BATCH_PARAMS(T, INT)                                                                  \
    int layout, const int *side, const int *uplo, const int *transa, const int *diag, const INT *m,          \
        const INT *n, const T *alpha, const T *const *a, const INT *lda, T *const *b, const INT *ldb,        \
        INT group_count, const INT *group_size
#define GPB_CBLAS_TRSM_BATCH_ARGS GPB_CBLAS_TRSM_ARGS, group_count, group_size

/* Equal calls at fixed distances (oneMKL) */
#define GPB_F77_GEMM_BATCH_STRIDED_PARAMS(T, INT)                                                       \
    const char *transa, const char *transb, const INT *m, const INT *n, const INT *k, const T *alpha,   \
        const T *a, const INT *lda, const INT *stridea, const T *b, const INT *ldb, const INT *strideb, \
        const T *beta, T *c, const INT *ldc, const INT *stridec, const INT *batch_size
#define GPB_F77_GEMM_BATCH_STRIDED_ARGS \
    transa, transb, m, n, k, alpha, a, lda, stridea, b, ldb, strideb, beta, c, ldc, stridec, batch_size

#define GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(T, SCALAR, INT)                                                  \
    int layout, int transa, int transb, INT m, INT n, INT k, SCALAR alpha, const T *a, INT lda, INT stridea, \
        const T *b, INT ldb, INT strideb, SCALAR beta, T *c, INT ldc, INT stridec, INT batch_size
#define GPB_CBLAS_GEMM_BATCH_STRIDED_ARGS                                                            \
    layout, transa, transb, m, n, k, alpha, a, lda, stridea, b, ldb, strideb, beta, c, ldc, stridec, \
        batch_size

#define GPB_F77_SYRK_BATCH_STRIDED_PARAMS(T, INT)                                                          \
    const char *uplo, const char *trans, const INT *n, const INT *k, const T *alpha, const T *a,           \
        const INT *lda, const INT *stridea, const T *beta, T *c, const INT *ldc, const INT *stridec,       \
        const INT *batch_size
#define GPB_F77_SYRK_BATCH_STRIDED_ARGS \
    uplo, trans, n, k, alpha, a, lda, stridea, beta, c, ldc, stridec, batch_size

#define GPB_CBLAS_SYRK_BATCH_STRIDED_PARAMS(T, SCALAR, INT)                                                \
    int layout, int uplo, int trans, INT n, INT k, SCALAR alpha, const T *a, INT lda, INT stridea,         \
        SCALAR beta, T *c, INT ldc, INT stridec, INT batch_size
#define GPB_CBLAS_SYRK_BATCH_STRIDED_ARGS layout, GPB_F77_SYRK_BATCH_STRIDED_ARGS

#define GPB_F77_TRSM_BATCH_STRIDED_PARAMS(T, INT)                                                         \
    const char *side, const char *uplo, const char *transa, const char *diag, const INT *m, const INT *n, \
        const T *alpha, const T *a, const INT *lda, const INT *stridea, T *b, const INT *ldb,             \
        const INT *strideb, const INT *batch_size
#define GPB_F77_TRSM_BATCH_STRIDED_ARGS \
    side, uplo, transa, diag, m, n, alpha, a, lda, stridea, b, ldb, strideb, batch_size

#define GPB_CBLAS_TRSM_BATCH_STRIDED_PARAMS(T, SCALAR, INT)                                                \
    int layout, int side, int uplo, int transa, int diag, INT m, INT n, SCALAR alpha, const T *a, INT lda, \
        INT stridea, T *b, INT ldb, INT strideb, INT batch_size
#define GPB_CBLAS_TRSM_BATCH_STRIDED_ARGS layout, GPB_F77_TRSM_BATCH_STRIDED_ARGS

#endif
