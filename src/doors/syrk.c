/* SPDX-License-Identifier: MIT */
/* The doors of SYRK and HERK: every exported spelling. To us each is a product of a matrix with its own
   transpose, of which one triangle is written. Illegal letters, T of complex HERK among them, go to the host,
   which reports them. */
#include "src/doors/door.h"

/* The letter of op(A) as gpb_call has it: N, or `transposed`, which is T, or C of HERK. Of real types T and C
   are the same. 0: illegal. */
static char op_a(enum gpb_type type, char transposed, char trans)
{
    const bool either = !gpb_type_is_complex(type) && (trans == 'T' || trans == 'C');
    return trans == 'N' ? 'N' : either || trans == transposed ? transposed : 0;
}

/* The letter of the other operand, which is A, too. */
static char op_b(char transposed, char op) { return op == 'N' ? transposed : op ? 'N' : 0; }

/* r: the type of alpha and beta. op: of A. */
#define CALL(p, r, name, bits, structured, other, op, up, of, at)                             \
    { .symbol = name, .routine = GPB_ROUTINE_SYRK, .width = bits, .type = GPB_TYPE_##p,       \
      .m = of(n), .n = of(n), .k = of(k), .batch = 1, .alpha = gpb_scalar_##r(at(alpha)),     \
      .beta = gpb_scalar_##r(at(beta)),                                                       \
      .x = { { .base = a, .ld = of(lda), .trans = op },                                       \
             { .base = a, .ld = of(lda), .trans = op_b(other, op) },                          \
             { .base = c, .ld = of(ldc), .trans = 'N', .uplo = up, .structure = structured } } }
#define AT(x) (*(x))
#define VALUE(x) (x)

#define F77_RANK_K(p, r, structure, other, name, bits, INT)                                  \
    void gpb_door_##name(GPB_F77_SYRK_PARAMS(gpb_##p, gpb_##r, INT))                         \
    {                                                                                        \
        void (*next)(GPB_F77_SYRK_PARAMS(gpb_##p, gpb_##r, INT), size_t, size_t);            \
        const char op = op_a(GPB_TYPE_##p, other, gpb_letter(trans));                        \
        gpb_call call = CALL(p, r, #name, bits, structure, other, op,                        \
                             gpb_triangle(gpb_letter(uplo)), AT, VALUE);                     \
        GPB_GO_ON(name, next(GPB_F77_SYRK_ARGS, 1, 1))                                       \
    }
#define C_RANK_K(p, r, structure, other, name, bits, INT)                                            \
    void gpb_door_##name(GPB_CBLAS_SYRK_PARAMS(gpb_##p, GPB_SCALAR_##r, INT))                        \
    {                                                                                                \
        void (*next)(GPB_CBLAS_SYRK_PARAMS(gpb_##p, GPB_SCALAR_##r, INT));                           \
        const char op = op_a(GPB_TYPE_##p, other, gpb_trans(trans));                                 \
        gpb_call call = CALL(p, r, #name, bits, structure, other, op, gpb_uplo(uplo), VALUE,         \
                             GPB_ADDRESS_##r);                                                       \
        gpb_from_layout(&call, layout);                                                              \
        GPB_GO_ON(name, next(GPB_CBLAS_SYRK_ARGS))                                                   \
    }

#define F77_SYRK(p, name, bits, INT) F77_RANK_K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define C_SYRK(p, name, bits, INT)   C_RANK_K(p, p, GPB_SYMMETRIC, 'T', name, bits, INT)
#define F77_HERK_c(name, bits, INT)  F77_RANK_K(c, s, GPB_HERMITIAN, 'C', name, bits, INT)
#define F77_HERK_z(name, bits, INT)  F77_RANK_K(z, d, GPB_HERMITIAN, 'C', name, bits, INT)
#define C_HERK_c(name, bits, INT)    C_RANK_K(c, s, GPB_HERMITIAN, 'C', name, bits, INT)
#define C_HERK_z(name, bits, INT)    C_RANK_K(z, d, GPB_HERMITIAN, 'C', name, bits, INT)
#define F77_HERK(p, name, bits, INT) F77_HERK_##p(name, bits, INT)
#define C_HERK(p, name, bits, INT)   C_HERK_##p(name, bits, INT)

GPB_PRECISIONS(F77_SYRK, C_SYRK, syrk)
GPB_WHEEL_PRECISIONS(F77_SYRK, C_SYRK, syrk)
GPB_SPELLINGS(c, F77_HERK, C_HERK, cherk)
GPB_SPELLINGS(z, F77_HERK, C_HERK, zherk)
GPB_WHEEL_SPELLINGS(c, F77_HERK, C_HERK, cherk)
GPB_WHEEL_SPELLINGS(z, F77_HERK, C_HERK, zherk)
