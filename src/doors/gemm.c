/* SPDX-License-Identifier: MIT */
/* The doors of GEMM and GEMMTR (also called GEMMT): every exported spelling, in four precisions. A door puts
   the caller's arguments into a gpb_call and asks the hub. A call that is not computed there goes to the
   host's function of the same name, with the caller's own arguments.
   GEMM3M is GEMM to us. It lets a library multiply complex numbers by three real products instead of four,
   which is less accurate, but no kernel of ours does that.
   Fortran's hidden lengths are not read, because C callers pass none. They are passed to the host, but not in
   a tail call, because gcc would write them into stack slots that a C caller never reserved. */
#include "src/doors/door.h"

/* The three operands. C has no transposition. up: the triangle of C. */
#define OPERANDS(letter, up, of)                             \
    { { .base = a, .ld = of(lda), .trans = letter(transa) }, \
      { .base = b, .ld = of(ldb), .trans = letter(transb) }, \
      { .base = c, .ld = of(ldc), .trans = 'N', .uplo = up } }
#define AT(x) (*(x))
#define VALUE(x) (x)
#define F77_CALL(p, name, bits, up, rows)                                                           \
    { .symbol = name, .width = bits, .type = GPB_TYPE_##p, .m = rows, .n = *n, .k = *k, .batch = 1, \
      .alpha = gpb_scalar_##p(alpha), .beta = gpb_scalar_##p(beta), .x = OPERANDS(gpb_letter, up, AT) }
#define C_CALL(p, name, bits, up, rows)                                                               \
    { .symbol = name, .width = bits, .type = GPB_TYPE_##p, .m = rows, .n = n, .k = k, .batch = 1,     \
      .alpha = gpb_scalar_##p(GPB_ADDRESS_##p(alpha)), .beta = gpb_scalar_##p(GPB_ADDRESS_##p(beta)), \
      .x = OPERANDS(gpb_trans, up, VALUE) }

#define F77_GEMM(p, name, bits, INT)                                     \
    void gpb_door_##name(GPB_F77_GEMM_PARAMS(gpb_##p, INT))              \
    {                                                                    \
        void (*next)(GPB_F77_GEMM_PARAMS(gpb_##p, INT), size_t, size_t); \
        gpb_call call = F77_CALL(p, #name, bits, 'G', *m);               \
        GPB_GO_ON(name, next(GPB_F77_GEMM_ARGS, 1, 1))                   \
    }
#define F77_GEMMTR(p, name, bits, INT)                                                \
    void gpb_door_##name(GPB_F77_GEMMTR_PARAMS(gpb_##p, INT))                         \
    {                                                                                 \
        void (*next)(GPB_F77_GEMMTR_PARAMS(gpb_##p, INT), size_t, size_t, size_t);    \
        gpb_call call = F77_CALL(p, #name, bits, gpb_triangle(gpb_letter(uplo)), *n); \
        GPB_GO_ON(name, next(GPB_F77_GEMMTR_ARGS, 1, 1, 1))                           \
    }
#define C_GEMM(p, name, bits, INT)                                            \
    void gpb_door_##name(GPB_CBLAS_GEMM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT)) \
    {                                                                         \
        void (*next)(GPB_CBLAS_GEMM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));    \
        gpb_call call = C_CALL(p, #name, bits, 'G', m);                       \
        gpb_from_layout(&call, layout);                                       \
        GPB_GO_ON(name, next(GPB_CBLAS_GEMM_ARGS))                            \
    }
#define C_GEMMTR(p, name, bits, INT)                                            \
    void gpb_door_##name(GPB_CBLAS_GEMMTR_PARAMS(gpb_##p, GPB_SCALAR_##p, INT)) \
    {                                                                           \
        void (*next)(GPB_CBLAS_GEMMTR_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));    \
        gpb_call call = C_CALL(p, #name, bits, gpb_uplo(uplo), n);              \
        gpb_from_layout(&call, layout);                                         \
        GPB_GO_ON(name, next(GPB_CBLAS_GEMMTR_ARGS))                            \
    }

GPB_PRECISIONS(F77_GEMM, C_GEMM, gemm)
GPB_WHEEL_PRECISIONS(F77_GEMM, C_GEMM, gemm)
GPB_SPELLINGS(c, F77_GEMM, C_GEMM, cgemm3m)
GPB_SPELLINGS(z, F77_GEMM, C_GEMM, zgemm3m)
GPB_PRECISIONS(F77_GEMMTR, C_GEMMTR, gemmtr)
GPB_PRECISIONS(F77_GEMMTR, C_GEMMTR, gemmt)
