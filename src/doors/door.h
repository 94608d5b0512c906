/* SPDX-License-Identifier: MIT */
/* What the doors share: from the letters and enumerations of BLAS's callers to those of gpb_call. */
#ifndef GPB_DOOR_H
#define GPB_DOOR_H

#include <stddef.h>
#include <stdint.h>

#include "src/host/level3_abi.h"
#include "src/host/next.h"
#include "src/hub/offload.h"

typedef float gpb_s;
typedef double gpb_d;
typedef float _Complex gpb_c;
typedef double _Complex gpb_z;

enum { GPB_ROW_MAJOR = 101, GPB_COL_MAJOR = 102 };

/* Like Fortran's LSAME it reads the first character only, in any case. */
static inline char gpb_letter(const char *of) { return (char)(*of & 0xdf); }
/* CBLAS_TRANSPOSE, CBLAS_UPLO, CBLAS_SIDE and CBLAS_DIAG as letters; 0, which is illegal, for other values.
   */
static inline char gpb_trans(int of) { return of == 111 ? 'N' : of == 112 ? 'T' : of == 113 ? 'C' : 0; }
static inline char gpb_uplo(int of) { return of == 121 ? 'U' : of == 122 ? 'L' : 0; }
static inline char gpb_side(int of) { return of == 141 ? 'L' : of == 142 ? 'R' : 0; }
static inline char gpb_diag_letter(int of) { return of == 131 ? 'N' : of == 132 ? 'U' : 0; }
/* The letter if it is one of these; 0, which is illegal, if not. */
static inline char gpb_one_of(const char *letters, char letter)
{
    for (; *letters; letters++)
        if (*letters == letter) return letter;
    return 0;
}
/* 'U' and 'L'; 0 for other letters. */
static inline char gpb_triangle(char letter) { return gpb_one_of("UL", letter); }

/* 'N', 'T' and 'C'; 0 for other letters. */
static inline char gpb_op(char letter) { return gpb_one_of("NTC", letter); }

/* 'N' and 'U'; 0 for other letters. */
static inline char gpb_diag(char letter) { return gpb_one_of("NU", letter); }

/* The letter of SYRK's op(A) as gpb_call has it: N, or `transposed`, which is T, or C of HERK. Of real types
   T and C are the same. 0: illegal. */
static inline char gpb_rank_k_op(enum gpb_type type, char transposed, char trans)
{
    const bool either = !gpb_type_is_complex(type) && (trans == 'T' || trans == 'C');
    return trans == 'N' ? 'N' : either || trans == transposed ? transposed : 0;
}
/* The letter of the other operand, which is A, too, or is stored as A is. */
static inline char gpb_rank_k_other(char transposed, char op)
{
    return op == 'N' ? transposed : op ? 'N' : 0;
}

/* alpha and beta as gpb_call has them. */
static inline gpb_scalar gpb_scalar_s(const void *x) { return *(const float *)x; }
static inline gpb_scalar gpb_scalar_d(const void *x) { return *(const double *)x; }
static inline gpb_scalar gpb_scalar_c(const void *x) { return *(const gpb_c *)x; }
static inline gpb_scalar gpb_scalar_z(const void *x) { return *(const gpb_z *)x; }

/* CBLAS passes real scalars by value and complex ones by address. */
#define GPB_SCALAR_s float
#define GPB_SCALAR_d double
#define GPB_SCALAR_c const void *
#define GPB_SCALAR_z const void *
#define GPB_ADDRESS_s(x) &(x)
#define GPB_ADDRESS_d(x) &(x)
#define GPB_ADDRESS_c(x) (x)
#define GPB_ADDRESS_z(x) (x)

/* All plain spellings of a routine in four precisions. F77(p, name, bits, INT) and C(p, name, bits, INT)
   define one door each. */
#define GPB_SPELLINGS(p, F77, C, stem)                           \
    F77(p, stem##_, 32, int32_t) F77(p, stem##_64_, 64, int64_t) \
    C(p, cblas_##stem, 32, int32_t) C(p, cblas_##stem##_64, 64, int64_t) C(p, cblas_##stem##64_, 64, int64_t)
#define GPB_PRECISIONS(F77, C, stem)                                    \
    GPB_SPELLINGS(s, F77, C, s##stem) GPB_SPELLINGS(d, F77, C, d##stem) \
    GPB_SPELLINGS(c, F77, C, c##stem) GPB_SPELLINGS(z, F77, C, z##stem)

/* The spellings inside the NumPy and SciPy wheels. */
#define GPB_WHEEL_SPELLINGS(p, F77, C, stem)                                     \
    F77(p, scipy_##stem##_, 32, int32_t) F77(p, scipy_##stem##_64_, 64, int64_t) \
    C(p, scipy_cblas_##stem, 32, int32_t) C(p, scipy_cblas_##stem##64_, 64, int64_t)
#define GPB_WHEEL_PRECISIONS(F77, C, stem)                                          \
    GPB_WHEEL_SPELLINGS(s, F77, C, s##stem) GPB_WHEEL_SPELLINGS(d, F77, C, d##stem) \
    GPB_WHEEL_SPELLINGS(c, F77, C, c##stem) GPB_WHEEL_SPELLINGS(z, F77, C, z##stem)

/* The spellings of a routine that C has no names for, in four precisions. */
#define GPB_F77_SPELLINGS(p, F77, stem)                          \
    F77(p, stem##_, 32, int32_t) F77(p, stem##_64_, 64, int64_t) \
    F77(p, scipy_##stem##_, 32, int32_t) F77(p, scipy_##stem##_64_, 64, int64_t)
#define GPB_F77_PRECISIONS(F77, stem)                                     \
    GPB_F77_SPELLINGS(s, F77, s##stem) GPB_F77_SPELLINGS(d, F77, d##stem) \
    GPB_F77_SPELLINGS(c, F77, c##stem) GPB_F77_SPELLINGS(z, F77, z##stem)

/* The end of a door: if the hub declines the call, the host's function of the same name gets the caller's own
   arguments. */
#define GPB_GO_ON(name, host_call) GPB_GO_ON_BY(gpb_offload, name, host_call)
#define GPB_GO_ON_BY(offload, name, host_call)     \
    gpb_host_call declined;                        \
    if (offload(&call, &declined)) return;         \
    *(void **)&next = gpb_next(GPB_SYMBOL_##name); \
    host_call;                                     \
    gpb_offload_done(&declined);

/* Makes a call column-major whose fields are still as the CBLAS caller gave them. Row-major C = A B is
   column-major C' = B' A', and the upper triangle of C is the lower triangle of C', as those of a symmetric A
   and A' are. The transpose of a Hermitian A is Hermitian, too, so nothing is to be conjugated. An illegal
   layout makes the call illegal. */
static inline void gpb_from_layout(gpb_call *call, int layout)
{
    if (layout == GPB_COL_MAJOR) return;
    const gpb_matrix a = call->x[GPB_A];
    const int64_t m = call->m;
    call->row_major = true;
    call->m = call->n;
    call->n = m;
    call->x[GPB_A] = call->x[GPB_B];
    call->x[GPB_B] = a;
    if (layout != GPB_ROW_MAJOR) call->x[GPB_A].trans = 0;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        char *uplo = &call->x[x].uplo;
        *uplo = *uplo == 'U' ? 'L' : *uplo == 'L' ? 'U' : *uplo;
    }
}

#endif
