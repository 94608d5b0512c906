/* SPDX-License-Identifier: MIT */
/* CBLAS as libgpublas exports it, for programs that are linked with -lgpublas and have no cblas.h. Any other
   cblas.h serves as well.
   Matrices are column-major or row-major, as the layout says. Sizes, leading dimensions, strides and
   increments are in elements. cblas_x takes 32-bit integers, cblas_x_64 takes 64-bit integers. Complex
   scalars and operands are passed by address, as arrays of two reals (real part, imaginary part). Semantics
   and argument numbers are those of netlib's CBLAS; the batches are oneMKL's. An
   illegal argument is reported through cblas_xerbla or xerbla_, and then nothing is computed. */
#ifndef GPUBLAS_CBLAS_H
#define GPUBLAS_CBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CBLAS_H                  /* the enumerations of netlib's cblas.h, unless that was included before */
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;
typedef enum CBLAS_DIAG { CblasNonUnit = 131, CblasUnit = 132 } CBLAS_DIAG;
typedef enum CBLAS_SIDE { CblasLeft = 141, CblasRight = 142 } CBLAS_SIDE;

/* What the routines compute that netlib's CBLAS lacks, and those that they extend. op(X) is X, X^T or X^H,
   as CBLAS_TRANSPOSE says; of real matrices X^H is X^T. A matrix of r x c, as it is stored, has a leading
   dimension of at least max(1, r) in column-major layout, max(1, c) in row-major. Sizes may be 0. If beta is
   0, C is not read. Operands that are written must overlap no other operand or member.

   gemm     C = alpha op(A) op(B) + beta C. op(A) is m x k, op(B) k x n, C m x n.
   gemmtr   the same with C of n x n and op(A) of n x k, but of C only the triangle CBLAS_UPLO is read and
            written. gemmt is its older name, oneMKL's.
   gemm3m   gemm of complex matrices by another name. Here it is as accurate as gemm; a host's own may
            use three real products in place of four, and round more.
   syrk     C = alpha op(A) op(A)^T + beta C, C symmetric of n x n, of which the triangle CBLAS_UPLO is read
            and written; op(A) is n x k. CblasConjTrans is illegal for complex matrices.
   trsm     op(A) X = alpha B (CblasLeft; A is m x m) or X op(A) = alpha B (CblasRight; A is n x n). X and B
            are m x n, and X takes B's place. Of A only the triangle CBLAS_UPLO is read, with CblasUnit not
            its diagonal. Whether A is singular is not tested.

   Batches are many calls in one, of members that do not depend on each other:
   x_batch           group_count groups. Members of group g are alike, and there are group_size[g] of them,
                     or 0. Each letter, size, leading dimension, alpha and beta is an array with an entry a
                     group (alpha and beta of complex routines: pairs of reals, one behind the other). a, b
                     and c are arrays of addresses, one a member, in the order of the groups.
   x_batch_strided   batch_size members that are alike. Member i of A lies i stridea elements behind the
                     first, those of B and C likewise. A stride of 0 for what is only read is allowed.

   Errors: an illegal layout or enumerator is reported to cblas_xerbla by its place, the layout being 1; a
   size to xerbla_ by its place in the Fortran routine, which has no layout. With one illegal group nothing of
   any is computed. A host that has the batch reports in its own way. tests/programs/batches.c has the places.
   Sources: netlib.org/lapack/explore-html: dgemm.f, dgemmtr.f (from 3.12.1), dsyrk.f, dtrsm.f; oneMKL's
   Developer Reference for C, intel.com/content/www/us/en/docs/onemkl/developer-reference-c: cblas_?gemmt,
   cblas_?gemm3m, and cblas_?gemm_batch, cblas_?syrk_batch, cblas_?trsm_batch, each also _strided. */

/* The routines of one precision p, with elements T, scalars S (by value if real, by address if complex),
   integers I and the suffix x. */
#define GPB_ALL(p, T, S, I, x)                                                                               \
    void cblas_##p##swap##x(I n, T *X, I incx, T *Y, I incy);                                                \
    void cblas_##p##copy##x(I n, const T *X, I incx, T *Y, I incy);                                          \
    void cblas_##p##axpy##x(I n, S alpha, const T *X, I incx, T *Y, I incy);                                 \
    void cblas_##p##scal##x(I n, S alpha, T *X, I incx);                                                     \
    size_t cblas_i##p##amax##x(I n, const T *X, I incx);                                                     \
    void cblas_##p##gemv##x(CBLAS_LAYOUT, CBLAS_TRANSPOSE, I m, I n, S alpha, const T *A, I lda, const T *X, \
                            I incx, S beta, T *Y, I incy);                                                   \
    void cblas_##p##gbmv##x(CBLAS_LAYOUT, CBLAS_TRANSPOSE, I m, I n, I kl, I ku, S alpha, const T *A, I lda, \
                            const T *X, I incx, S beta, T *Y, I incy);                                       \
    void cblas_##p##trmv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, const T *A, I lda,   \
                            T *X, I incx);                                                                   \
    void cblas_##p##trsv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, const T *A, I lda,   \
                            T *X, I incx);                                                                   \
    void cblas_##p##tbmv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, I k, const T *A,     \
                            I lda, T *X, I incx);                                                            \
    void cblas_##p##tbsv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, I k, const T *A,     \
                            I lda, T *X, I incx);                                                            \
    void cblas_##p##tpmv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, const T *Ap, T *X,   \
                            I incx);                                                                         \
    void cblas_##p##tpsv##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I n, const T *Ap, T *X,   \
                            I incx);                                                                         \
    void cblas_##p##gemm##x(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, I m, I n, I k, S alpha,          \
                            const T *A, I lda, const T *B, I ldb, S beta, T *C, I ldc);                      \
    void cblas_##p##gemmtr##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, I n, I k, S alpha, \
                              const T *A, I lda, const T *B, I ldb, S beta, T *C, I ldc);                    \
    void cblas_##p##gemmt##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, I n, I k, S alpha,  \
                             const T *A, I lda, const T *B, I ldb, S beta, T *C, I ldc);                     \
    void cblas_##p##gemm_batch##x(CBLAS_LAYOUT, const CBLAS_TRANSPOSE *, const CBLAS_TRANSPOSE *,            \
                                  const I *m, const I *n, const I *k, const T *alpha, const T **A,           \
                                  const I *lda, const T **B, const I *ldb, const T *beta, T **C,             \
                                  const I *ldc, I group_count, const I *group_size);                         \
    void cblas_##p##gemm_batch_strided##x(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, I m, I n, I k,     \
                                          S alpha, const T *A, I lda, I stridea, const T *B, I ldb,          \
                                          I strideb, S beta, T *C, I ldc, I stridec, I batch_size);          \
    void cblas_##p##syrk_batch##x(CBLAS_LAYOUT, const CBLAS_UPLO *, const CBLAS_TRANSPOSE *, const I *n,     \
                                  const I *k, const T *alpha, const T **A, const I *lda, const T *beta,      \
                                  T **C, const I *ldc, I group_count, const I *group_size);                  \
    void cblas_##p##syrk_batch_strided##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, I n, I k, S alpha,      \
                                          const T *A, I lda, I stridea, S beta, T *C, I ldc, I stridec,      \
                                          I batch_size);                                                     \
    void cblas_##p##trsm_batch##x(CBLAS_LAYOUT, const CBLAS_SIDE *, const CBLAS_UPLO *,                      \
                                  const CBLAS_TRANSPOSE *, const CBLAS_DIAG *, const I *m, const I *n,       \
                                  const T *alpha, const T **A, const I *lda, T **B, const I *ldb,            \
                                  I group_count, const I *group_size);                                       \
    void cblas_##p##trsm_batch_strided##x(CBLAS_LAYOUT, CBLAS_SIDE, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, \
                                          I m, I n, S alpha, const T *A, I lda, I stridea, T *B, I ldb,      \
                                          I strideb, I batch_size);                                          \
    void cblas_##p##symm##x(CBLAS_LAYOUT, CBLAS_SIDE, CBLAS_UPLO, I m, I n, S alpha, const T *A, I lda,      \
                            const T *B, I ldb, S beta, T *C, I ldc);                                         \
    void cblas_##p##syrk##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, I n, I k, S alpha, const T *A, I lda, \
                            S beta, T *C, I ldc);                                                            \
    void cblas_##p##syr2k##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, I n, I k, S alpha, const T *A,       \
                             I lda, const T *B, I ldb, S beta, T *C, I ldc);                                 \
    void cblas_##p##trmm##x(CBLAS_LAYOUT, CBLAS_SIDE, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I m, I n,     \
                            S alpha, const T *A, I lda, T *B, I ldb);                                        \
    void cblas_##p##trsm##x(CBLAS_LAYOUT, CBLAS_SIDE, CBLAS_UPLO, CBLAS_TRANSPOSE, CBLAS_DIAG, I m, I n,     \
                            S alpha, const T *A, I lda, T *B, I ldb);

#define GPB_REAL(p, T, I, x)                                                                                 \
    T cblas_##p##dot##x(I n, const T *X, I incx, const T *Y, I incy);                                        \
    T cblas_##p##nrm2##x(I n, const T *X, I incx);                                                           \
    T cblas_##p##asum##x(I n, const T *X, I incx);                                                           \
    void cblas_##p##rot##x(I n, T *X, I incx, T *Y, I incy, T c, T s);                                       \
    void cblas_##p##rotg##x(T *a, T *b, T *c, T *s);                                                         \
    void cblas_##p##rotm##x(I n, T *X, I incx, T *Y, I incy, const T *P);                                    \
    void cblas_##p##rotmg##x(T *d1, T *d2, T *b1, T b2, T *P);                                               \
    void cblas_##p##symv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *A, I lda, const T *X, I incx,   \
                            T beta, T *Y, I incy);                                                           \
    void cblas_##p##sbmv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, I k, T alpha, const T *A, I lda, const T *X,      \
                            I incx, T beta, T *Y, I incy);                                                   \
    void cblas_##p##spmv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *Ap, const T *X, I incx, T beta, \
                            T *Y, I incy);                                                                   \
    void cblas_##p##ger##x(CBLAS_LAYOUT, I m, I n, T alpha, const T *X, I incx, const T *Y, I incy, T *A,    \
                           I lda);                                                                           \
    void cblas_##p##syr##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *X, I incx, T *A, I lda);         \
    void cblas_##p##spr##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *X, I incx, T *Ap);               \
    void cblas_##p##syr2##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *X, I incx, const T *Y, I incy,  \
                            T *A, I lda);                                                                    \
    void cblas_##p##spr2##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, T alpha, const T *X, I incx, const T *Y, I incy,  \
                            T *Ap);

#define GPB_COMPLEX(p, r, R, I, x)                                                                           \
    void cblas_##p##dotu_sub##x(I n, const void *X, I incx, const void *Y, I incy, void *dotu);              \
    void cblas_##p##dotc_sub##x(I n, const void *X, I incx, const void *Y, I incy, void *dotc);              \
    R cblas_##r##p##nrm2##x(I n, const void *X, I incx);                                                     \
    R cblas_##r##p##asum##x(I n, const void *X, I incx);                                                     \
    void cblas_##p##rotg##x(void *a, void *b, R *c, void *s);                                                \
    void cblas_##p##r##rot##x(I n, void *X, I incx, void *Y, I incy, R c, R s);                              \
    void cblas_##p##r##scal##x(I n, R alpha, void *X, I incx);                                               \
    R cblas_##r##cabs1##x(const void *z);                                                                    \
    void cblas_##p##hemv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, const void *alpha, const void *A, I lda,          \
                            const void *X, I incx, const void *beta, void *Y, I incy);                       \
    void cblas_##p##hbmv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, I k, const void *alpha, const void *A, I lda,     \
                            const void *X, I incx, const void *beta, void *Y, I incy);                       \
    void cblas_##p##hpmv##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, const void *alpha, const void *Ap, const void *X, \
                            I incx, const void *beta, void *Y, I incy);                                      \
    void cblas_##p##geru##x(CBLAS_LAYOUT, I m, I n, const void *alpha, const void *X, I incx, const void *Y, \
                            I incy, void *A, I lda);                                                         \
    void cblas_##p##gerc##x(CBLAS_LAYOUT, I m, I n, const void *alpha, const void *X, I incx, const void *Y, \
                            I incy, void *A, I lda);                                                         \
    void cblas_##p##her##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, R alpha, const void *X, I incx, void *A, I lda);   \
    void cblas_##p##hpr##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, R alpha, const void *X, I incx, void *Ap);         \
    void cblas_##p##her2##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, const void *alpha, const void *X, I incx,         \
                            const void *Y, I incy, void *A, I lda);                                          \
    void cblas_##p##hpr2##x(CBLAS_LAYOUT, CBLAS_UPLO, I n, const void *alpha, const void *X, I incx,         \
                            const void *Y, I incy, void *Ap);                                                \
    void cblas_##p##gemm3m##x(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, I m, I n, I k,                 \
                              const void *alpha, const void *A, I lda, const void *B, I ldb,                 \
                              const void *beta, void *C, I ldc);                                             \
    void cblas_##p##hemm##x(CBLAS_LAYOUT, CBLAS_SIDE, CBLAS_UPLO, I m, I n, const void *alpha,               \
                            const void *A, I lda, const void *B, I ldb, const void *beta, void *C, I ldc);   \
    void cblas_##p##herk##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, I n, I k, R alpha, const void *A,     \
                            I lda, R beta, void *C, I ldc);                                                  \
    void cblas_##p##her2k##x(CBLAS_LAYOUT, CBLAS_UPLO, CBLAS_TRANSPOSE, I n, I k, const void *alpha,         \
                             const void *A, I lda, const void *B, I ldb, R beta, void *C, I ldc);

#define GPB_MIXED(I, x)                                                                      \
    float cblas_sdsdot##x(I n, float alpha, const float *X, I incx, const float *Y, I incy); \
    double cblas_dsdot##x(I n, const float *X, I incx, const float *Y, I incy);

#define GPB_WIDTH(I, x)                                                                         \
    GPB_ALL(s, float, float, I, x)                                                              \
    GPB_ALL(d, double, double, I, x) GPB_ALL(c, void, const void *, I, x)                       \
        GPB_ALL(z, void, const void *, I, x) GPB_REAL(s, float, I, x) GPB_REAL(d, double, I, x) \
            GPB_COMPLEX(c, s, float, I, x) GPB_COMPLEX(z, d, double, I, x) GPB_MIXED(I, x)
GPB_WIDTH(int32_t, )
GPB_WIDTH(int64_t, _64)

/* Called when argument number p of routine `rout` is illegal. If the program defines this function, its
   definition is called instead of the library's. */
void cblas_xerbla(int p, const char *rout, const char *form, ...);

#undef GPB_ALL
#undef GPB_REAL
#undef GPB_COMPLEX
#undef GPB_MIXED
#undef GPB_WIDTH
#endif

#ifdef __cplusplus
}
#endif
#endif
