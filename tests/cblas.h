/* SPDX-License-Identifier: MIT */
/* CBLAS's names of the routines that we compute, in all types. */
#ifndef GPB_TEST_CBLAS_H
#define GPB_TEST_CBLAS_H

#include "dispatch/type.h"
#include "src/host/level3_abi.h"

/* How CBLAS declares and takes elements and alpha, by the last column of dispatch/type.def. */
#define CBLAS_ELEMENT_REAL(type) type
#define CBLAS_ELEMENT_COMPLEX(type) void
#define CBLAS_SCALAR_REAL(type) type
#define CBLAS_SCALAR_COMPLEX(type) const void *
#define CBLAS_PASS_REAL(x) x
#define CBLAS_PASS_COMPLEX(x) &x

/* The parameters of a type's routine. */
#define CBLAS_GEMM(type, kind) \
    GPB_CBLAS_GEMM_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)
#define CBLAS_GEMMTR(type, kind) \
    GPB_CBLAS_GEMMTR_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)
#define CBLAS_SYRK(type, kind) \
    GPB_CBLAS_SYRK_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)
#define CBLAS_SYR2K(type, kind)                                                               \
    GPB_CBLAS_SYR2K_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), \
                           CBLAS_SCALAR_##kind(type), int)
#define CBLAS_SYMM(type, kind) \
    GPB_CBLAS_SYMM_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)
#define CBLAS_GEMM_BATCH(type, kind) GPB_CBLAS_GEMM_BATCH_PARAMS(CBLAS_ELEMENT_##kind(type), int)
#define CBLAS_SYRK_BATCH(type, kind) GPB_CBLAS_SYRK_BATCH_PARAMS(CBLAS_ELEMENT_##kind(type), int)
#define CBLAS_SYRK_BATCH_STRIDED(type, kind) \
    GPB_CBLAS_SYRK_BATCH_STRIDED_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)
#define CBLAS_GEMM_BATCH_STRIDED(type, kind) \
    GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(CBLAS_ELEMENT_##kind(type), CBLAS_SCALAR_##kind(type), int)

/* cblas_sgemm and so on. */
#define TYPE(letter, type, bytes, flops, kind)                              \
    void cblas_##letter##gemm(CBLAS_GEMM(type, kind));                      \
    void cblas_##letter##gemmtr(CBLAS_GEMMTR(type, kind));                  \
    void cblas_##letter##syrk(CBLAS_SYRK(type, kind));                      \
    void cblas_##letter##syr2k(CBLAS_SYR2K(type, kind));                    \
    void cblas_##letter##symm(CBLAS_SYMM(type, kind));                      \
    void cblas_##letter##syrk_batch(CBLAS_SYRK_BATCH(type, kind));          \
    void cblas_##letter##syrk_batch_strided(CBLAS_SYRK_BATCH_STRIDED(type, kind)); \
    void cblas_##letter##gemm_batch(CBLAS_GEMM_BATCH(type, kind));          \
    void cblas_##letter##gemm_batch_strided(CBLAS_GEMM_BATCH_STRIDED(type, kind));
#include "dispatch/type.def"
#undef TYPE
void cblas_cherk(GPB_CBLAS_SYRK_PARAMS(void, float, int));
void cblas_zherk(GPB_CBLAS_SYRK_PARAMS(void, double, int));
void cblas_cher2k(GPB_CBLAS_SYR2K_PARAMS(void, const void *, float, int));
void cblas_zher2k(GPB_CBLAS_SYR2K_PARAMS(void, const void *, double, int));
void cblas_chemm(GPB_CBLAS_SYMM_PARAMS(void, const void *, int));
void cblas_zhemm(GPB_CBLAS_SYMM_PARAMS(void, const void *, int));

enum {
    ROW_MAJOR = 101,
    COLUMN_MAJOR = 102,
    NO_TRANS = 111,
    TRANS = 112,
    CONJ_TRANS = 113,
    UPPER = 121,
    LOWER = 122,
    LEFT = 141,
    RIGHT = 142
};

#endif
