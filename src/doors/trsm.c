/* SPDX-License-Identifier: MIT */
/* The doors of TRSM: every exported spelling. What is not solved by products goes to the host's function of
   the same name, with the caller's own arguments. Illegal letters and enumerations are 0 to us, and the host
   reports them. */
#include "src/doors/door.h"
#include "src/hub/solve.h"

/* The letter if it is one of two or three; else 0. */
static char one_of(const char *letters, char letter)
{
    for (; *letters; letters++)
        if (*letters == letter) return letter;
    return 0;
}
/* CBLAS_SIDE and CBLAS_DIAG as letters. */
static char side_letter(int of) { return of == 141 ? 'L' : of == 142 ? 'R' : 0; }
static char diag_letter(int of) { return of == 131 ? 'N' : of == 132 ? 'U' : 0; }

/* By rows X op(A) = alpha B is op(A)^T X^T = alpha B^T by columns, and A is stored as its transpose. */
static void from_layout(gpb_solve *s, int layout)
{
    if (layout == GPB_COL_MAJOR) return;
    const int64_t m = s->m;
    s->row_major = true;
    s->m = s->n;
    s->n = m;
    s->side = layout != GPB_ROW_MAJOR ? 0 : s->side == 'L' ? 'R' : s->side == 'R' ? 'L' : 0;
    s->uplo = s->uplo == 'L' ? 'U' : s->uplo == 'U' ? 'L' : 0;
}

#define GO_ON(name, host_call)                     \
    if (gpb_solve_offload(&solve)) return;         \
    *(void **)&next = gpb_next(GPB_SYMBOL_##name); \
    host_call;

/* The arguments that Fortran and C pass alike, as values. */
#define SOLVE(p, name, bits, side_, uplo_, trans_, diag_, of, at)                                         \
    { .symbol = name, .type = GPB_TYPE_##p, .width = bits, .side = side_, .uplo = uplo_, .trans = trans_, \
      .diag = diag_, .m = of(m), .n = of(n), .alpha = gpb_scalar_##p(at(alpha)), .a = a,                  \
      .lda = of(lda), .b = b, .ldb = of(ldb) }
#define AT(x) (*(x))
#define VALUE(x) (x)

#define F77_TRSM(p, name, bits, INT)                                                             \
    void gpb_door_##name(GPB_F77_TRSM_PARAMS(gpb_##p, INT))                                      \
    {                                                                                            \
        void (*next)(GPB_F77_TRSM_PARAMS(gpb_##p, INT), size_t, size_t, size_t, size_t);         \
        const gpb_solve solve = SOLVE(p, #name, bits, one_of("LR", gpb_letter(side)),            \
                                      one_of("UL", gpb_letter(uplo)),                            \
                                      one_of("NTC", gpb_letter(transa)),                         \
                                      one_of("NU", gpb_letter(diag)), AT, VALUE);                \
        GO_ON(name, next(GPB_F77_TRSM_ARGS, 1, 1, 1, 1))                                         \
    }
#define C_TRSM(p, name, bits, INT)                                                                       \
    void gpb_door_##name(GPB_CBLAS_TRSM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT))                            \
    {                                                                                                    \
        void (*next)(GPB_CBLAS_TRSM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));                               \
        gpb_solve solve = SOLVE(p, #name, bits, side_letter(side), gpb_uplo(uplo), gpb_trans(transa),    \
                                diag_letter(diag), VALUE, GPB_ADDRESS_##p);                              \
        from_layout(&solve, layout);                                                                     \
        GO_ON(name, next(GPB_CBLAS_TRSM_ARGS))                                                           \
    }

GPB_PRECISIONS(F77_TRSM, C_TRSM, trsm)
GPB_WHEEL_PRECISIONS(F77_TRSM, C_TRSM, trsm)
