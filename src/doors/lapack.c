/* SPDX-License-Identifier: MIT */
/* The doors of LAPACK's solvers: every exported spelling. What is not solved by products goes to the host's
   routine of the same name, with the caller's own arguments. Illegal letters are 0 to us, and the host
   reports them. LAPACK is Fortran alone; LAPACKE calls these names. */
#include <errno.h>

#include "src/doors/door.h"
#include "src/host/lapack_abi.h"
#include "src/host/watch.h"
#include "src/hub/factor.h"
#include "src/hub/routing.h"

/* The matrix that is factored, or its factors, which getrs and potrs only read. */
#define MATRIX(p, name, bits, up, rows, cols, pivots)                                        \
    { .symbol = name, .type = GPB_TYPE_##p, .width = bits, .uplo = up, .m = rows, .n = cols, \
      .a = (void *)(uintptr_t)a, .lda = *lda, .ipiv = (void *)(uintptr_t)(pivots) }
#define SYSTEM(p, name, bits, up, op, pivots) \
    { .a = MATRIX(p, name, bits, up, *n, *n, pivots), .trans = op, .nrhs = *nrhs, .b = b, .ldb = *ldb }

/* errno stays the caller's, as in gpb_offload. also: what is written beside INFO. */
#define GO_ON(name, offload, given, also, host_call) \
    int64_t found;                                   \
    const int before = errno;                        \
    const bool done = offload(&(given), &found);     \
    errno = before;                                  \
    if (done) {                                      \
        *info = (__typeof__(*info))found;            \
        also;                                        \
        return;                                      \
    }                                                \
    *(void **)&next = gpb_next(GPB_SYMBOL_##name);   \
    host_call;                                       \
    gpb_routing_leave_host();

/* '1' is the 1-norm, too. */
static inline char gpb_norm(char norm) { return norm == '1' ? 'O' : gpb_one_of("OI", gpb_letter(&norm)); }

#define F77_GETRF(p, name, bits, INT)                                        \
    void gpb_door_##name(GPB_GETRF_PARAMS(gpb_##p, INT))                     \
    {                                                                        \
        void (*next)(GPB_GETRF_PARAMS(gpb_##p, INT));                        \
        const gpb_factor factor = MATRIX(p, #name, bits, 'G', *m, *n, ipiv); \
        GO_ON(name, gpb_factor_offload, factor, , next(GPB_GETRF_ARGS))      \
    }
/* Their parameters are the same. */
#define F77_CHOLESKY(p, name, bits, INT, offload)                                                       \
    void gpb_door_##name(GPB_POTRF_PARAMS(gpb_##p, INT))                                                \
    {                                                                                                   \
        void (*next)(GPB_POTRF_PARAMS(gpb_##p, INT), size_t);                                           \
        const gpb_factor factor = MATRIX(p, #name, bits, gpb_triangle(gpb_letter(uplo)), *n, *n, NULL); \
        GO_ON(name, offload, factor, , next(GPB_POTRF_ARGS, 1))                                         \
    }
#define F77_POTRF(p, name, bits, INT) F77_CHOLESKY(p, name, bits, INT, gpb_factor_offload)
#define F77_POTRI(p, name, bits, INT) F77_CHOLESKY(p, name, bits, INT, gpb_cholesky_inverse_offload)
#define F77_LAUUM(p, name, bits, INT) F77_CHOLESKY(p, name, bits, INT, gpb_square_offload)
#define F77_GETRS(p, name, bits, INT)                                                           \
    void gpb_door_##name(GPB_GETRS_PARAMS(gpb_##p, INT))                                        \
    {                                                                                           \
        void (*next)(GPB_GETRS_PARAMS(gpb_##p, INT), size_t);                                   \
        const gpb_system system = SYSTEM(p, #name, bits, 'G', gpb_op(gpb_letter(trans)), ipiv); \
        GO_ON(name, gpb_system_offload, system, , next(GPB_GETRS_ARGS, 1))                      \
    }
#define F77_POTRS(p, name, bits, INT)                                                                \
    void gpb_door_##name(GPB_POTRS_PARAMS(gpb_##p, INT))                                             \
    {                                                                                                \
        void (*next)(GPB_POTRS_PARAMS(gpb_##p, INT), size_t);                                        \
        const gpb_system system = SYSTEM(p, #name, bits, gpb_triangle(gpb_letter(uplo)), 'N', NULL); \
        GO_ON(name, gpb_system_offload, system, , next(GPB_POTRS_ARGS, 1))                           \
    }
#define F77_GESV(p, name, bits, INT)                                          \
    void gpb_door_##name(GPB_GESV_PARAMS(gpb_##p, INT))                       \
    {                                                                         \
        void (*next)(GPB_GESV_PARAMS(gpb_##p, INT));                          \
        const gpb_system system = SYSTEM(p, #name, bits, 'G', 'N', ipiv);     \
        GO_ON(name, gpb_system_factor_offload, system, , next(GPB_GESV_ARGS)) \
    }
#define F77_POSV(p, name, bits, INT)                                                                 \
    void gpb_door_##name(GPB_POSV_PARAMS(gpb_##p, INT))                                              \
    {                                                                                                \
        void (*next)(GPB_POSV_PARAMS(gpb_##p, INT), size_t);                                         \
        const gpb_system system = SYSTEM(p, #name, bits, gpb_triangle(gpb_letter(uplo)), 'N', NULL); \
        GO_ON(name, gpb_system_factor_offload, system, , next(GPB_POSV_ARGS, 1))                     \
    }
/* Refined solutions, which are in d and z alone. netlib's routines end with dgetrs or dpotrs. */
#define RWORK_d
#define RWORK_z , double *rwork
#define RWORK_ARG_d
#define RWORK_ARG_z , rwork
#define REFINED_DOOR_32
#define REFINED_DOOR_64 GPB_WATCH_WIDE_DOOR
#define REFINE(system, found) gpb_system_refine_offload(system, b, *ldb, &iterations, found)
#define REFINED_SYSTEM(p, name, bits, up, pivots)                                               \
    int64_t iterations;                                                                         \
    const gpb_system system = { .a = MATRIX(p, name, bits, up, *n, *n, pivots), .trans = 'N',   \
                                .nrhs = *nrhs, .b = x, .ldb = *ldx };
#define F77_REFINED_GESV(p, name, bits, INT)                                                             \
    REFINED_DOOR_##bits void gpb_door_##name(GPB_REFINED_GESV_PARAMS(gpb_##p, INT, RWORK_##p))           \
    {                                                                                                    \
        void (*next)(GPB_REFINED_GESV_PARAMS(gpb_##p, INT, RWORK_##p));                                  \
        REFINED_SYSTEM(p, #name, bits, 'G', ipiv)                                                        \
        GO_ON(name, REFINE, system, *iter = (INT)iterations, next(GPB_REFINED_GESV_ARGS(RWORK_ARG_##p))) \
    }
#define F77_REFINED_POSV(p, name, bits, INT)                                                   \
    REFINED_DOOR_##bits void gpb_door_##name(GPB_REFINED_POSV_PARAMS(gpb_##p, INT, RWORK_##p)) \
    {                                                                                          \
        void (*next)(GPB_REFINED_POSV_PARAMS(gpb_##p, INT, RWORK_##p), size_t);                \
        REFINED_SYSTEM(p, #name, bits, gpb_triangle(gpb_letter(uplo)), NULL)                   \
        GO_ON(name, REFINE, system, *iter = (INT)iterations,                                   \
              next(GPB_REFINED_POSV_ARGS(RWORK_ARG_##p), 1))                                   \
    }
#define F77_TRTRI(p, name, bits, INT)                                                                       \
    void gpb_door_##name(GPB_TRTRI_PARAMS(gpb_##p, INT))                                                    \
    {                                                                                                       \
        void (*next)(GPB_TRTRI_PARAMS(gpb_##p, INT), size_t, size_t);                                       \
        const gpb_inverse triangle = { .symbol = #name, .type = GPB_TYPE_##p, .width = bits,                \
                                              .uplo = gpb_triangle(gpb_letter(uplo)),                       \
                                        .diag = gpb_diag(gpb_letter(diag)), .n = *n, .a = a, .lda = *lda }; \
        GO_ON(name, gpb_inverse_offload, triangle, , next(GPB_TRTRI_ARGS, 1, 1))                            \
    }
#define F77_TRTRS(p, name, bits, INT)                                                                        \
    void gpb_door_##name(GPB_TRTRS_PARAMS(gpb_##p, INT))                                                     \
    {                                                                                                        \
        void (*next)(GPB_TRTRS_PARAMS(gpb_##p, INT), size_t, size_t, size_t);                                \
        const gpb_triangular solve = { .symbol = #name, .solves = true, .type = GPB_TYPE_##p, .width = bits, \
                                  .side = 'L', .uplo = gpb_triangle(gpb_letter(uplo)),                       \
                                  .trans = gpb_op(gpb_letter(trans)),                                        \
                                  .diag = gpb_diag(gpb_letter(diag)), .m = *n, .n = *nrhs, .alpha = 1,       \
                                  .a = a, .lda = *lda, .b = b, .ldb = *ldb };                                \
        GO_ON(name, gpb_triangular_system_offload, solve, , next(GPB_TRTRS_ARGS, 1, 1, 1))                   \
    }
/* A question for the best size of work has lwork = -1. */
#define F77_GETRI(p, name, bits, INT)                                                      \
    void gpb_door_##name(GPB_GETRI_PARAMS(gpb_##p, INT))                                   \
    {                                                                                      \
        void (*next)(GPB_GETRI_PARAMS(gpb_##p, INT));                                      \
        const gpb_factor lu = MATRIX(p, #name, bits, *lwork < *n ? 0 : 'G', *n, *n, ipiv); \
        GO_ON(name, gpb_lu_inverse_offload, lu, *work = (gpb_##p)*n, next(GPB_GETRI_ARGS)) \
    }

#define GPB_REAL_s float
#define GPB_REAL_d double
#define GPB_REAL_c float
#define GPB_REAL_z double
#define CONDITION(p, name, bits, up, which)                                                    \
    double reciprocal = 0;                                                                     \
    const gpb_condition condition = { .factors = MATRIX(p, #name, bits, up, *n, *n, NULL),     \
                                      .norm = which, .anorm = *anorm, .rcond = &reciprocal };
#define F77_GECON(p, name, bits, INT)                                                          \
    void gpb_door_##name(GPB_GECON_PARAMS(gpb_##p, GPB_REAL_##p, INT))                         \
    {                                                                                          \
        void (*next)(GPB_GECON_PARAMS(gpb_##p, GPB_REAL_##p, INT), size_t);                    \
        CONDITION(p, name, bits, 'G', gpb_norm(*norm))                                         \
        GO_ON(name, gpb_condition_offload, condition, *rcond = (GPB_REAL_##p)reciprocal,       \
              next(GPB_GECON_ARGS, 1))                                                         \
    }
#define F77_POCON(p, name, bits, INT)                                                          \
    void gpb_door_##name(GPB_POCON_PARAMS(gpb_##p, GPB_REAL_##p, INT))                         \
    {                                                                                          \
        void (*next)(GPB_POCON_PARAMS(gpb_##p, GPB_REAL_##p, INT), size_t);                    \
        CONDITION(p, name, bits, gpb_triangle(gpb_letter(uplo)), 'O')                          \
        GO_ON(name, gpb_condition_offload, condition, *rcond = (GPB_REAL_##p)reciprocal,       \
              next(GPB_POCON_ARGS, 1))                                                         \
    }

GPB_F77_PRECISIONS(F77_GETRF, getrf)
GPB_F77_PRECISIONS(F77_GETRF, getrf2)
GPB_F77_PRECISIONS(F77_GETRS, getrs)
GPB_F77_PRECISIONS(F77_GESV, gesv)
GPB_F77_PRECISIONS(F77_POTRF, potrf)
GPB_F77_PRECISIONS(F77_POTRF, potrf2)
GPB_F77_PRECISIONS(F77_POTRS, potrs)
GPB_F77_PRECISIONS(F77_POSV, posv)
GPB_F77_SPELLINGS(d, F77_REFINED_GESV, dsgesv)
GPB_F77_SPELLINGS(z, F77_REFINED_GESV, zcgesv)
GPB_F77_SPELLINGS(d, F77_REFINED_POSV, dsposv)
GPB_F77_SPELLINGS(z, F77_REFINED_POSV, zcposv)
GPB_F77_PRECISIONS(F77_GETRI, getri)
GPB_F77_PRECISIONS(F77_POTRI, potri)
GPB_F77_PRECISIONS(F77_LAUUM, lauum)
GPB_F77_PRECISIONS(F77_TRTRI, trtri)
GPB_F77_PRECISIONS(F77_TRTRS, trtrs)
GPB_F77_PRECISIONS(F77_GECON, gecon)
GPB_F77_PRECISIONS(F77_POCON, pocon)
