/* SPDX-License-Identifier: MIT */
/* The routines of routine.def through the library's CBLAS names, in each type, with operands anywhere. */
#ifndef GPB_GPU_CALL_H
#define GPB_GPU_CALL_H

#include "src/host/gemm_abi.h"
#include "tests/problem.h"

/* How CBLAS declares and takes elements and alpha, by the last column of dispatch/type.def. */
#define CALL_ELEMENT_REAL(type) type
#define CALL_ELEMENT_COMPLEX(type) void
#define CALL_SCALAR_REAL(type) type
#define CALL_SCALAR_COMPLEX(type) const void *
#define CALL_PASS_REAL(x) x
#define CALL_PASS_COMPLEX(x) &x

/* cblas_sgemm and so on. */
#define TYPE(letter, type, bytes, flops, kind)                                                                \
    void cblas_##letter##gemm(                                                                                \
        GPB_CBLAS_GEMM_PARAMS(CALL_ELEMENT_##kind(type), CALL_SCALAR_##kind(type), int));                     \
    void cblas_##letter##gemmtr(                                                                              \
        GPB_CBLAS_GEMMTR_PARAMS(CALL_ELEMENT_##kind(type), CALL_SCALAR_##kind(type), int));                   \
    void cblas_##letter##gemm_batch(GPB_CBLAS_GEMM_BATCH_PARAMS(CALL_ELEMENT_##kind(type), int));             \
    void cblas_##letter##gemm_batch_strided(                                                                  \
        GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(CALL_ELEMENT_##kind(type), CALL_SCALAR_##kind(type), int));
#include "dispatch/type.def"
#undef TYPE

enum {
    ROW_MAJOR = 101,
    COLUMN_MAJOR = 102,
    NO_TRANS = 111,
    TRANS = 112,
    CONJ_TRANS = 113,
    UPPER = 121,
    LOWER = 122
};

/* x as the type holds it. */
gpb_scalar call_rounded(enum gpb_type type, gpb_scalar x);

/* The problem's routine on operands whose first elements are there. stride: elements from a member of a batch
   to the next, of each operand. */
void call_through_cblas(const gpb_problem *of, gpb_scalar alpha, gpb_scalar beta,
                        void *const at[GPB_OPERANDS], const int64_t stride[GPB_OPERANDS]);

#endif
