/* SPDX-License-Identifier: MIT */
/* The doors of SYMM and HEMM: every exported spelling. To us each is a product of which one operand is
   symmetric or Hermitian. Illegal letters and enumerations are 0 to us and go to the host, which reports
   them. */
#include "src/doors/door.h"

/* Exchanges the operands of a call whose A is the symmetric one if that is to be on the right. */
static void put_on_side(gpb_call *call, char side)
{
    const gpb_matrix a = call->x[GPB_A];
    if (!side) call->x[GPB_A].trans = 0;
    if (side != 'R') return;
    call->x[GPB_A] = call->x[GPB_B];
    call->x[GPB_B] = a;
    call->k = call->n;
}

/* On the left side. */
#define CALL(p, name, bits, structured, up, of, at)                                           \
    { .symbol = name, .routine = GPB_ROUTINE_SYMM, .width = bits, .type = GPB_TYPE_##p,       \
      .m = of(m), .n = of(n), .k = of(m), .batch = 1, .alpha = gpb_scalar_##p(at(alpha)),     \
      .beta = gpb_scalar_##p(at(beta)),                                                       \
      .x = { { .base = a, .ld = of(lda), .trans = 'N', .uplo = up, .structure = structured }, \
             { .base = b, .ld = of(ldb), .trans = 'N' },                                      \
             { .base = c, .ld = of(ldc), .trans = 'N', .uplo = 'G' } } }
#define AT(x) (*(x))
#define VALUE(x) (x)

#define F77_SIDED(p, structure, name, bits, INT)                                            \
    void gpb_door_##name(GPB_F77_SYMM_PARAMS(gpb_##p, INT))                                 \
    {                                                                                       \
        void (*next)(GPB_F77_SYMM_PARAMS(gpb_##p, INT), size_t, size_t);                    \
        gpb_call call = CALL(p, #name, bits, structure, gpb_triangle(gpb_letter(uplo)), AT, \
                             VALUE);                                                        \
        put_on_side(&call, gpb_one_of("LR", gpb_letter(side)));                             \
        GPB_GO_ON(name, next(GPB_F77_SYMM_ARGS, 1, 1))                                      \
    }
#define C_SIDED(p, structure, name, bits, INT)                                                   \
    void gpb_door_##name(GPB_CBLAS_SYMM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT))                    \
    {                                                                                            \
        void (*next)(GPB_CBLAS_SYMM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));                       \
        gpb_call call = CALL(p, #name, bits, structure, gpb_uplo(uplo), VALUE, GPB_ADDRESS_##p); \
        put_on_side(&call, gpb_side(side));                                                      \
        gpb_from_layout(&call, layout);                                                          \
        GPB_GO_ON(name, next(GPB_CBLAS_SYMM_ARGS))                                               \
    }

#define F77_SYMM(p, name, bits, INT) F77_SIDED(p, GPB_SYMMETRIC, name, bits, INT)
#define C_SYMM(p, name, bits, INT)   C_SIDED(p, GPB_SYMMETRIC, name, bits, INT)
#define F77_HEMM(p, name, bits, INT) F77_SIDED(p, GPB_HERMITIAN, name, bits, INT)
#define C_HEMM(p, name, bits, INT)   C_SIDED(p, GPB_HERMITIAN, name, bits, INT)

GPB_PRECISIONS(F77_SYMM, C_SYMM, symm)
GPB_WHEEL_PRECISIONS(F77_SYMM, C_SYMM, symm)
GPB_SPELLINGS(c, F77_HEMM, C_HEMM, chemm)
GPB_SPELLINGS(z, F77_HEMM, C_HEMM, zhemm)
GPB_WHEEL_SPELLINGS(c, F77_HEMM, C_HEMM, chemm)
GPB_WHEEL_SPELLINGS(z, F77_HEMM, C_HEMM, zhemm)
