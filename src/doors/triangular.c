/* SPDX-License-Identifier: MIT */
/* The doors of TRSM and TRMM: every exported spelling. What is not computed by products goes to the host's
   function of the same name, with the caller's own arguments. Illegal letters and enumerations are 0 to us,
   and the host reports them. */
#include <errno.h>

#include "src/doors/door.h"
#include "src/hub/routing.h"
#include "src/hub/triangular.h"

/* By rows op(A) B is B^T op(A)^T by columns, and A is stored as its transpose. */
static void from_layout(gpb_triangular *t, int layout)
{
    if (layout == GPB_COL_MAJOR) return;
    const int64_t m = t->m;
    t->row_major = true;
    t->m = t->n;
    t->n = m;
    t->side = layout != GPB_ROW_MAJOR ? 0 : t->side == 'L' ? 'R' : t->side == 'R' ? 'L' : 0;
    t->uplo = t->uplo == 'L' ? 'U' : t->uplo == 'U' ? 'L' : 0;
}

/* errno stays the caller's, as in gpb_offload. */
#define GO_ON(name, host_call)                       \
    const int before = errno;                        \
    const bool done = gpb_triangular_offload(&call); \
    errno = before;                                  \
    if (done) return;                                \
    *(void **)&next = gpb_next(GPB_SYMBOL_##name);   \
    host_call;                                       \
    gpb_routing_leave_host();

/* The arguments that Fortran and C pass alike, as values. */
#define CALL(p, solve, name, bits, side_, uplo_, trans_, diag_, of, at)                            \
    { .symbol = name, .solves = solve, .type = GPB_TYPE_##p, .width = bits, .side = side_,         \
      .uplo = uplo_, .trans = trans_, .diag = diag_, .m = of(m), .n = of(n),                       \
      .alpha = gpb_scalar_##p(at(alpha)), .a = a, .lda = of(lda), .b = b, .ldb = of(ldb) }
#define AT(x) (*(x))
#define VALUE(x) (x)

#define F77_TRIANGULAR(p, solve, name, bits, INT)                                                      \
    void gpb_door_##name(GPB_F77_TRSM_PARAMS(gpb_##p, INT))                                            \
    {                                                                                                  \
        void (*next)(GPB_F77_TRSM_PARAMS(gpb_##p, INT), size_t, size_t, size_t, size_t);               \
        const gpb_triangular call = CALL(p, solve, #name, bits, gpb_one_of("LR", gpb_letter(side)),    \
                                         gpb_triangle(gpb_letter(uplo)), gpb_op(gpb_letter(transa)),   \
                                         gpb_diag(gpb_letter(diag)), AT, VALUE);                       \
        GO_ON(name, next(GPB_F77_TRSM_ARGS, 1, 1, 1, 1))                                               \
    }
#define C_TRIANGULAR(p, solve, name, bits, INT)                                                        \
    void gpb_door_##name(GPB_CBLAS_TRSM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT))                          \
    {                                                                                                  \
        void (*next)(GPB_CBLAS_TRSM_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));                             \
        gpb_triangular call = CALL(p, solve, #name, bits, gpb_side(side), gpb_uplo(uplo),              \
                                   gpb_trans(transa), gpb_diag_letter(diag), VALUE, GPB_ADDRESS_##p);  \
        from_layout(&call, layout);                                                                    \
        GO_ON(name, next(GPB_CBLAS_TRSM_ARGS))                                                         \
    }

#define F77_TRSM(p, name, bits, INT) F77_TRIANGULAR(p, true, name, bits, INT)
#define C_TRSM(p, name, bits, INT)   C_TRIANGULAR(p, true, name, bits, INT)
#define F77_TRMM(p, name, bits, INT) F77_TRIANGULAR(p, false, name, bits, INT)
#define C_TRMM(p, name, bits, INT)   C_TRIANGULAR(p, false, name, bits, INT)

GPB_PRECISIONS(F77_TRSM, C_TRSM, trsm)
GPB_WHEEL_PRECISIONS(F77_TRSM, C_TRSM, trsm)
GPB_PRECISIONS(F77_TRMM, C_TRMM, trmm)
GPB_WHEEL_PRECISIONS(F77_TRMM, C_TRMM, trmm)
