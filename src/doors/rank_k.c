/* SPDX-License-Identifier: MIT */
/* The doors of SYRK, HERK, SYR2K and HER2K: every exported spelling. To us SYRK is a product of a matrix with
   its own transpose, of which one triangle is written. SYR2K is the sum of two products of two matrices, and
   a call describes the first (dispatch/call.h). Illegal letters, T of complex HERK among them, go to the
   host, which reports them. */
#include "src/doors/door.h"

/* alpha_, beta_: as gpb_call has them. with, ld_with: the other operand. op: of A. */
#define CALL(p, rank, name, bits, structured, other, op, up, of, alpha_, beta_, with, ld_with)          \
    { .symbol = name, .routine = GPB_ROUTINE_##rank, .width = bits, .type = GPB_TYPE_##p, .m = of(n),   \
      .n = of(n), .k = of(k), .batch = 1, .alpha = alpha_, .beta = beta_,                               \
      .x = { { .base = a, .ld = of(lda), .trans = op },                                                 \
             { .base = with, .ld = of(ld_with), .trans = gpb_rank_k_other(other, op) },                \
             { .base = c, .ld = of(ldc), .trans = 'N', .uplo = up, .structure = structured } } }
#define AT(x) (*(x))
#define VALUE(x) (x)

/* r: the type of alpha and beta, of SYR2K and HER2K that of beta alone. */
#define F77_RANK_K(p, r, structure, other, name, bits, INT)                                            \
    void gpb_door_##name(GPB_F77_SYRK_PARAMS(gpb_##p, gpb_##r, INT))                                   \
    {                                                                                                  \
        void (*next)(GPB_F77_SYRK_PARAMS(gpb_##p, gpb_##r, INT), size_t, size_t);                      \
        const char op = gpb_rank_k_op(GPB_TYPE_##p, other, gpb_letter(trans));                         \
        gpb_call call = CALL(p, SYRK, #name, bits, structure, other, op,                               \
                             gpb_triangle(gpb_letter(uplo)), AT, gpb_scalar_##r(alpha),                \
                             gpb_scalar_##r(beta), a, lda);                                            \
        GPB_GO_ON(name, next(GPB_F77_SYRK_ARGS, 1, 1))                                                 \
    }
#define C_RANK_K(p, r, structure, other, name, bits, INT)                                              \
    void gpb_door_##name(GPB_CBLAS_SYRK_PARAMS(gpb_##p, GPB_SCALAR_##r, INT))                          \
    {                                                                                                  \
        void (*next)(GPB_CBLAS_SYRK_PARAMS(gpb_##p, GPB_SCALAR_##r, INT));                             \
        const char op = gpb_rank_k_op(GPB_TYPE_##p, other, gpb_trans(trans));                          \
        gpb_call call = CALL(p, SYRK, #name, bits, structure, other, op, gpb_uplo(uplo), VALUE,        \
                             gpb_scalar_##r(GPB_ADDRESS_##r(alpha)),                                   \
                             gpb_scalar_##r(GPB_ADDRESS_##r(beta)), a, lda);                           \
        gpb_from_layout(&call, layout);                                                                \
        GPB_GO_ON(name, next(GPB_CBLAS_SYRK_ARGS))                                                     \
    }
#define F77_RANK_2K(p, r, structure, other, name, bits, INT)                                           \
    void gpb_door_##name(GPB_F77_SYR2K_PARAMS(gpb_##p, gpb_##r, INT))                                  \
    {                                                                                                  \
        void (*next)(GPB_F77_SYR2K_PARAMS(gpb_##p, gpb_##r, INT), size_t, size_t);                     \
        const char op = gpb_rank_k_op(GPB_TYPE_##p, other, gpb_letter(trans));                         \
        const gpb_call call = CALL(p, SYR2K, #name, bits, structure, other, op,                        \
                                   gpb_triangle(gpb_letter(uplo)), AT, gpb_scalar_##p(alpha),          \
                                   gpb_scalar_##r(beta), b, ldb);                                      \
        GPB_GO_ON(name, next(GPB_F77_SYR2K_ARGS, 1, 1))                        \
    }
#define C_RANK_2K(p, r, structure, other, name, bits, INT)                                             \
    void gpb_door_##name(GPB_CBLAS_SYR2K_PARAMS(gpb_##p, GPB_SCALAR_##p, GPB_SCALAR_##r, INT))         \
    {                                                                                                  \
        void (*next)(GPB_CBLAS_SYR2K_PARAMS(gpb_##p, GPB_SCALAR_##p, GPB_SCALAR_##r, INT));            \
        const char op = gpb_rank_k_op(GPB_TYPE_##p, other, gpb_trans(trans));                          \
        gpb_call call = CALL(p, SYR2K, #name, bits, structure, other, op, gpb_uplo(uplo), VALUE,       \
                             gpb_scalar_##p(GPB_ADDRESS_##p(alpha)),                                   \
                             gpb_scalar_##r(GPB_ADDRESS_##r(beta)), b, ldb);                           \
        gpb_from_layout(&call, layout);                                                                \
        GPB_GO_ON(name, next(GPB_CBLAS_SYR2K_ARGS))                            \
    }

/* Both languages and all spellings of one routine, and the types that it has. */
#define F77_SYRK(p, name, bits, INT)  F77_RANK_K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define C_SYRK(p, name, bits, INT)    C_RANK_K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define F77_SYR2K(p, name, bits, INT) F77_RANK_2K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define C_SYR2K(p, name, bits, INT)   C_RANK_2K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define REAL_c s
#define REAL_z d
#define HERMITIAN_(door, p, r, name, bits, INT) door(p, r, GPB_HERMITIAN, 'C', name, bits, INT)
#define HERMITIAN(door, p, r, name, bits, INT)  HERMITIAN_(door, p, r, name, bits, INT)
#define F77_HERK(p, name, bits, INT)  HERMITIAN(F77_RANK_K, p, REAL_##p, name, bits, INT)
#define C_HERK(p, name, bits, INT)    HERMITIAN(C_RANK_K, p, REAL_##p, name, bits, INT)
#define F77_HER2K(p, name, bits, INT) HERMITIAN(F77_RANK_2K, p, REAL_##p, name, bits, INT)
#define C_HER2K(p, name, bits, INT)   HERMITIAN(C_RANK_2K, p, REAL_##p, name, bits, INT)

GPB_PRECISIONS(F77_SYRK, C_SYRK, syrk)
GPB_WHEEL_PRECISIONS(F77_SYRK, C_SYRK, syrk)
GPB_PRECISIONS(F77_SYR2K, C_SYR2K, syr2k)
GPB_WHEEL_PRECISIONS(F77_SYR2K, C_SYR2K, syr2k)
GPB_SPELLINGS(c, F77_HERK, C_HERK, cherk)
GPB_SPELLINGS(z, F77_HERK, C_HERK, zherk)
GPB_WHEEL_SPELLINGS(c, F77_HERK, C_HERK, cherk)
GPB_WHEEL_SPELLINGS(z, F77_HERK, C_HERK, zherk)
GPB_SPELLINGS(c, F77_HER2K, C_HER2K, cher2k)
GPB_SPELLINGS(z, F77_HER2K, C_HER2K, zher2k)
GPB_WHEEL_SPELLINGS(c, F77_HER2K, C_HER2K, cher2k)
GPB_WHEEL_SPELLINGS(z, F77_HER2K, C_HER2K, zher2k)
