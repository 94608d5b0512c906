/* SPDX-License-Identifier: MIT */
/* The parameter lists of LAPACK's routines that have doors, as level3_abi.h has those of Level 3: for the
   doors, the embedded bodies and the calls of the host. INT is int32_t or int64_t, T the element. A call of
   a routine with a character argument adds `, (size_t)1`. */
#ifndef GPB_LAPACK_ABI_H
#define GPB_LAPACK_ABI_H

/* A = P L U */
#define GPB_GETRF_PARAMS(T, INT) const INT *m, const INT *n, T *a, const INT *lda, INT *ipiv, INT *info
#define GPB_GETRF_ARGS m, n, a, lda, ipiv, info

/* A = L L^H or U^H U */
#define GPB_POTRF_PARAMS(T, INT) const char *uplo, const INT *n, T *a, const INT *lda, INT *info
#define GPB_POTRF_ARGS uplo, n, a, lda, info

/* op(A) X = B by the factors of getrf */
#define GPB_GETRS_PARAMS(T, INT)                                                                         \
    const char *trans, const INT *n, const INT *nrhs, const T *a, const INT *lda, const INT *ipiv, T *b, \
        const INT *ldb, INT *info
#define GPB_GETRS_ARGS trans, n, nrhs, a, lda, ipiv, b, ldb, info

/* A X = B by the factors of potrf */
#define GPB_POTRS_PARAMS(T, INT)                                                                       \
    const char *uplo, const INT *n, const INT *nrhs, const T *a, const INT *lda, T *b, const INT *ldb, \
        INT *info
#define GPB_POTRS_ARGS uplo, n, nrhs, a, lda, b, ldb, info

/* getrf and getrs */
#define GPB_GESV_PARAMS(T, INT) \
    const INT *n, const INT *nrhs, T *a, const INT *lda, INT *ipiv, T *b, const INT *ldb, INT *info
#define GPB_GESV_ARGS n, nrhs, a, lda, ipiv, b, ldb, info

/* potrf and potrs */
#define GPB_POSV_PARAMS(T, INT) \
    const char *uplo, const INT *n, const INT *nrhs, T *a, const INT *lda, T *b, const INT *ldb, INT *info
#define GPB_POSV_ARGS uplo, n, nrhs, a, lda, b, ldb, info

/* gesv and posv in double precision, B apart from X, by factors of single precision that are refined. iter:
   how often, and then A is as it was; negative: factors of double precision are in A. RWORK: nothing, or the
   real array that complex types have, too. */
#define GPB_REFINED_GESV_PARAMS(T, INT, RWORK)                                                        \
    const INT *n, const INT *nrhs, T *a, const INT *lda, INT *ipiv, const T *b, const INT *ldb, T *x, \
        const INT *ldx, T *work, void *swork RWORK, INT *iter, INT *info
#define GPB_REFINED_GESV_ARGS(RWORK) n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work, swork RWORK, iter, info
#define GPB_REFINED_POSV_PARAMS(T, INT, RWORK)                                                         \
    const char *uplo, const INT *n, const INT *nrhs, T *a, const INT *lda, const T *b, const INT *ldb, \
        T *x, const INT *ldx, T *work, void *swork RWORK, INT *iter, INT *info
#define GPB_REFINED_POSV_ARGS(RWORK) uplo, n, nrhs, a, lda, b, ldb, x, ldx, work, swork RWORK, iter, info

/* A^-1 of a triangle, in place */
#define GPB_TRTRI_PARAMS(T, INT)                                                                  \
    const char *uplo, const char *diag, const INT *n, T *a, const INT *lda, INT *info
#define GPB_TRTRI_ARGS uplo, diag, n, a, lda, info

/* op(A) X = B with a triangle */
#define GPB_TRTRS_PARAMS(T, INT)                                                                        \
    const char *uplo, const char *trans, const char *diag, const INT *n, const INT *nrhs, const T *a,   \
        const INT *lda, T *b, const INT *ldb, INT *info
#define GPB_TRTRS_ARGS uplo, trans, diag, n, nrhs, a, lda, b, ldb, info

/* A^-1 by the factors of getrf, in place. lwork: n elements of work or more; -1 asks for the best */
#define GPB_GETRI_PARAMS(T, INT) \
    const INT *n, T *a, const INT *lda, const INT *ipiv, T *work, const INT *lwork, INT *info
#define GPB_GETRI_ARGS n, a, lda, ipiv, work, lwork, info

/* A^-1 by the factors of potrf, and L^H L or U U^H (lauum): the parameters of potrf */
#define GPB_POTRI_PARAMS(T, INT) GPB_POTRF_PARAMS(T, INT)
#define GPB_POTRI_ARGS GPB_POTRF_ARGS
#define GPB_LAUUM_PARAMS(T, INT) GPB_POTRF_PARAMS(T, INT)
#define GPB_LAUUM_ARGS GPB_POTRF_ARGS

/* 1 / (norm(A) norm(A^-1)) from the factors of getrf and of potrf; the second norm is estimated. R: the real
   type. other_work: n integers, or R's of complex types, and twice as many of those for gecon. */
#define GPB_GECON_PARAMS(T, R, INT)                                                                     \
    const char *norm, const INT *n, const T *a, const INT *lda, const R *anorm, R *rcond, T *work,      \
        void *other_work, INT *info
#define GPB_GECON_ARGS norm, n, a, lda, anorm, rcond, work, other_work, info
#define GPB_POCON_PARAMS(T, R, INT)                                                                     \
    const char *uplo, const INT *n, const T *a, const INT *lda, const R *anorm, R *rcond, T *work,      \
        void *other_work, INT *info
#define GPB_POCON_ARGS uplo, n, a, lda, anorm, rcond, work, other_work, info

/* Exchanges rows k1 to k2 of A, counted from 1, each with the row that ipiv names; backwards if incx < 0 */
#define GPB_LASWP_PARAMS(T, INT) \
    const INT *n, T *a, const INT *lda, const INT *k1, const INT *k2, const INT *ipiv, const INT *incx
#define GPB_LASWP_ARGS n, a, lda, k1, k2, ipiv, incx

#endif
