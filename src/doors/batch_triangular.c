/* SPDX-License-Identifier: MIT */
/* The doors of batched SYRK and TRSM, with oneMKL's signatures, as batch.c has those of GEMM. SYRK's C is a
   triangle, TRSM's A. Illegal letters and enumerations are 0 to us, and the host reports them. */
#include "src/doors/groups.h"
#include "src/hub/triangular.h"

#define AT(x) (*(x))
#define VALUE(x) (x)
#define OP(of) gpb_op(gpb_letter(of))
#define TRIANGLE(of) gpb_triangle(gpb_letter(of))
#define SIDE(of) gpb_one_of("LR", gpb_letter(of))
#define DIAG(of) gpb_diag(gpb_letter(of))

/* ---- SYRK */

/* Makes C = alpha A A^T + beta C of a call that lacks letters. */
static void rank_k(gpb_call *call, char uplo, char trans, int layout)
{
    call->routine = GPB_ROUTINE_SYRK;
    call->m = call->n;
    call->x[GPB_B] = call->x[GPB_A];
    call->x[GPB_A].trans = gpb_rank_k_op(call->type, 'T', trans);
    call->x[GPB_B].trans = gpb_rank_k_other('T', call->x[GPB_A].trans);
    call->x[GPB_C].trans = 'N';
    call->x[GPB_C].uplo = uplo;
    call->x[GPB_C].structure = GPB_SYMMETRIC;
    gpb_from_layout(call, layout);
}

static gpb_call rank_k_group(const gpb_groups *all, int64_t g, int64_t first)
{
    gpb_call call = gpb_groups_call(all, g);
    call.x[GPB_A] = gpb_groups_operand(all, all->a, all->lda, g, first);
    call.x[GPB_C] = gpb_groups_operand(all, all->c, all->ldc, g, first);
    rank_k(&call, gpb_triangle(gpb_groups_letter(all, all->uplo, g, gpb_uplo)),
           gpb_op(gpb_groups_letter(all, all->transa, g, gpb_trans)), all->layout);
    return call;
}

#define SYRK_GROUPED(p, name, bits, INT, PARAMS, given_layout, given_letters, given_count, ARGS, HOST, ...) \
    void gpb_door_##name(PARAMS)                                                                            \
    {                                                                                                       \
        void (*next)(PARAMS __VA_ARGS__);                                                                   \
        const gpb_groups all = { .symbol = #name, .type = GPB_TYPE_##p, .width = bits,                      \
                                 .layout = given_layout, .letters = given_letters, .uplo = uplo,            \
                                 .transa = trans, .n = n, .k = k, .lda = lda, .ldc = ldc,                   \
                                 .size = group_size, .alpha = alpha, .beta = beta,                          \
                                 .a = (const void *const *)a, .c = (const void *const *)c,                  \
                                 .count = given_count, .call = rank_k_group };                              \
        GPB_GROUPED(name, gpb_offload, &all, INT, next(ARGS), HOST)                                         \
    }
#define SYRK_FROM \
    uplo + g, trans + g, n + g, k + g, alpha + g, a + first, lda + g, beta + g, c + first, ldc + g
#define F77_SYRK_BATCH(p, name, bits, INT)                                                                \
    SYRK_GROUPED(p, name, bits, INT, GPB_WRAP(GPB_F77_SYRK_BATCH_PARAMS(gpb_##p, INT)), GPB_COL_MAJOR,    \
                 true, *group_count, GPB_WRAP(GPB_F77_SYRK_BATCH_ARGS, 1, 1),                             \
                 next(SYRK_FROM, &count, group_size + g, 1, 1), , size_t, size_t)
#define C_SYRK_BATCH(p, name, bits, INT)                                                                  \
    SYRK_GROUPED(p, name, bits, INT, GPB_WRAP(GPB_CBLAS_SYRK_BATCH_PARAMS(gpb_##p, INT)), layout, false,  \
                 group_count, GPB_WRAP(GPB_CBLAS_SYRK_BATCH_ARGS),                                        \
                 next(layout, SYRK_FROM, count, group_size + g))

#define SYRK_STRIDED(p, name, bits, of, at)                                                      \
    { .symbol = #name, .width = bits, .type = GPB_TYPE_##p, .n = of(n), .k = of(k),              \
      .batch = of(batch_size), .alpha = gpb_scalar_##p(at(alpha)),                               \
      .beta = gpb_scalar_##p(at(beta)),                                                          \
      .x = { [GPB_A] = { .base = a, .ld = of(lda), .stride = of(stridea) },                      \
             [GPB_C] = { .base = c, .ld = of(ldc), .stride = of(stridec) } } }
#define F77_SYRK_STRIDED(p, name, bits, INT)                                           \
    void gpb_door_##name(GPB_F77_SYRK_BATCH_STRIDED_PARAMS(gpb_##p, INT))              \
    {                                                                                  \
        void (*next)(GPB_F77_SYRK_BATCH_STRIDED_PARAMS(gpb_##p, INT), size_t, size_t); \
        gpb_call call = SYRK_STRIDED(p, name, bits, AT, VALUE);                        \
        rank_k(&call, TRIANGLE(uplo), OP(trans), GPB_COL_MAJOR);                       \
        GPB_GO_ON(name, next(GPB_F77_SYRK_BATCH_STRIDED_ARGS, 1, 1))                   \
    }
#define C_SYRK_STRIDED(p, name, bits, INT)                                                  \
    void gpb_door_##name(GPB_CBLAS_SYRK_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT)) \
    {                                                                                       \
        void (*next)(GPB_CBLAS_SYRK_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));    \
        gpb_call call = SYRK_STRIDED(p, name, bits, VALUE, GPB_ADDRESS_##p);                \
        rank_k(&call, gpb_uplo(uplo), gpb_trans(trans), layout);                            \
        GPB_GO_ON(name, next(GPB_CBLAS_SYRK_BATCH_STRIDED_ARGS))                            \
    }

/* ---- TRSM */

/* Makes X = alpha op(A)^-1 B or alpha B op(A)^-1, in B's place, of a call that lacks letters. */
static void solve(gpb_call *call, char side, char uplo, char trans, char diag, int layout)
{
    gpb_matrix a = call->x[GPB_A], b = call->x[GPB_B];
    const bool left = side == 'L';
    call->routine = GPB_ROUTINE_TRSM;
    call->k = left ? call->m : call->n;
    a.structure = GPB_TRIANGULAR;
    a.trans = trans;
    a.uplo = uplo;
    a.diag = diag;
    b.trans = 'N';
    call->x[GPB_A] = left ? a : b;
    call->x[GPB_B] = left ? b : a;
    call->x[GPB_C] = b;
    call->x[GPB_C].uplo = side ? 'G' : 0;
    gpb_from_layout(call, layout);
}

static gpb_call solve_group(const gpb_groups *all, int64_t g, int64_t first)
{
    gpb_call call = gpb_groups_call(all, g);
    call.x[GPB_A] = gpb_groups_operand(all, all->a, all->lda, g, first);
    call.x[GPB_B] = gpb_groups_operand(all, all->b, all->ldb, g, first);
    solve(&call, gpb_one_of("LR", gpb_groups_letter(all, all->side, g, gpb_side)),
          gpb_triangle(gpb_groups_letter(all, all->uplo, g, gpb_uplo)),
          gpb_op(gpb_groups_letter(all, all->transa, g, gpb_trans)),
          gpb_diag(gpb_groups_letter(all, all->diag, g, gpb_diag_letter)), all->layout);
    return call;
}

#define TRSM_GROUPED(p, name, bits, INT, PARAMS, given_layout, given_letters, given_count, ARGS, HOST, ...) \
    void gpb_door_##name(PARAMS)                                                                            \
    {                                                                                                       \
        void (*next)(PARAMS __VA_ARGS__);                                                                   \
        const gpb_groups all = { .symbol = #name, .type = GPB_TYPE_##p, .width = bits,                      \
                                 .layout = given_layout, .letters = given_letters, .side = side,            \
                                 .uplo = uplo, .transa = transa, .diag = diag, .m = m, .n = n,              \
                                 .lda = lda, .ldb = ldb, .size = group_size, .alpha = alpha,                \
                                 .a = (const void *const *)a, .b = (const void *const *)b,                  \
                                 .count = given_count, .call = solve_group };                               \
        GPB_GROUPED(name, gpb_triangular_batch, &all, INT, next(ARGS), HOST)                                \
    }
#define TRSM_FROM                                                                                        \
    side + g, uplo + g, transa + g, diag + g, m + g, n + g, alpha + g, a + first, lda + g, b + first,    \
    ldb + g
#define F77_TRSM_BATCH(p, name, bits, INT)                                                                \
    TRSM_GROUPED(p, name, bits, INT, GPB_WRAP(GPB_F77_TRSM_BATCH_PARAMS(gpb_##p, INT)), GPB_COL_MAJOR,    \
                 true, *group_count, GPB_WRAP(GPB_F77_TRSM_BATCH_ARGS, 1, 1, 1, 1),                       \
                 next(TRSM_FROM, &count, group_size + g, 1, 1, 1, 1), , size_t, size_t, size_t, size_t)
#define C_TRSM_BATCH(p, name, bits, INT)                                                                  \
    TRSM_GROUPED(p, name, bits, INT, GPB_WRAP(GPB_CBLAS_TRSM_BATCH_PARAMS(gpb_##p, INT)), layout, false,  \
                 group_count, GPB_WRAP(GPB_CBLAS_TRSM_BATCH_ARGS),                                        \
                 next(layout, TRSM_FROM, count, group_size + g))

#define TRSM_STRIDED(p, name, bits, of, at)                                                      \
    { .symbol = #name, .width = bits, .type = GPB_TYPE_##p, .m = of(m), .n = of(n),              \
      .batch = of(batch_size), .alpha = gpb_scalar_##p(at(alpha)),                               \
      .x = { [GPB_A] = { .base = a, .ld = of(lda), .stride = of(stridea) },                      \
             [GPB_B] = { .base = b, .ld = of(ldb), .stride = of(strideb) } } }
#define F77_TRSM_STRIDED(p, name, bits, INT)                                                           \
    void gpb_door_##name(GPB_F77_TRSM_BATCH_STRIDED_PARAMS(gpb_##p, INT))                              \
    {                                                                                                  \
        void (*next)(GPB_F77_TRSM_BATCH_STRIDED_PARAMS(gpb_##p, INT), size_t, size_t, size_t, size_t); \
        gpb_call call = TRSM_STRIDED(p, name, bits, AT, VALUE);                                        \
        solve(&call, SIDE(side), TRIANGLE(uplo), OP(transa), DIAG(diag), GPB_COL_MAJOR);               \
        GPB_GO_ON_BY(gpb_triangular_batch, name, next(GPB_F77_TRSM_BATCH_STRIDED_ARGS, 1, 1, 1, 1))    \
    }
#define C_TRSM_STRIDED(p, name, bits, INT)                                                             \
    void gpb_door_##name(GPB_CBLAS_TRSM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT))            \
    {                                                                                                  \
        void (*next)(GPB_CBLAS_TRSM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));               \
        gpb_call call = TRSM_STRIDED(p, name, bits, VALUE, GPB_ADDRESS_##p);                           \
        solve(&call, gpb_side(side), gpb_uplo(uplo), gpb_trans(transa), gpb_diag_letter(diag),         \
              layout);                                                                                 \
        GPB_GO_ON_BY(gpb_triangular_batch, name, next(GPB_CBLAS_TRSM_BATCH_STRIDED_ARGS))              \
    }

GPB_PRECISIONS(F77_SYRK_BATCH, C_SYRK_BATCH, syrk_batch)
GPB_PRECISIONS(F77_SYRK_STRIDED, C_SYRK_STRIDED, syrk_batch_strided)
GPB_PRECISIONS(F77_TRSM_BATCH, C_TRSM_BATCH, trsm_batch)
GPB_PRECISIONS(F77_TRSM_STRIDED, C_TRSM_STRIDED, trsm_batch_strided)
