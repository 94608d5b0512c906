/* SPDX-License-Identifier: MIT */
/* The doors of batched GEMM, with oneMKL's signatures. A group, or a strided batch, is one gpb_call. What we
   do not compute goes to the host's function of the same name, with pointers into the caller's own arrays.
   */
#include "src/doors/groups.h"

static gpb_call group(const gpb_groups *all, int64_t g, int64_t first)
{
    gpb_call call = gpb_groups_call(all, g);
    call.x[GPB_A] = gpb_groups_operand(all, all->a, all->lda, g, first);
    call.x[GPB_B] = gpb_groups_operand(all, all->b, all->ldb, g, first);
    call.x[GPB_C] = gpb_groups_operand(all, all->c, all->ldc, g, first);
    call.x[GPB_A].trans = gpb_op(gpb_groups_letter(all, all->transa, g, gpb_trans));
    call.x[GPB_B].trans = gpb_op(gpb_groups_letter(all, all->transb, g, gpb_trans));
    call.x[GPB_C].uplo = 'G';
    gpb_from_layout(&call, all->layout);
    return call;
}

#define GROUPED(p, name, bits, INT, PARAMS, given_layout, given_letters, given_count, ARGS, HOST_CALL, ...) \
    void gpb_door_##name(PARAMS)                                                                            \
    {                                                                                                       \
        void (*next)(PARAMS __VA_ARGS__);                                                                   \
        const gpb_groups all = { .symbol = #name, .type = GPB_TYPE_##p, .width = bits,                      \
                                 .layout = given_layout, .letters = given_letters, .transa = transa,        \
                                 .transb = transb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb,          \
                                 .ldc = ldc, .size = group_size, .alpha = alpha, .beta = beta,              \
                                 .a = (const void *const *)a, .b = (const void *const *)b,                  \
                                 .c = (const void *const *)c, .count = given_count, .call = group };        \
        GPB_GROUPED(name, gpb_offload, &all, INT, next(ARGS), HOST_CALL)                                    \
    }
#define FROM_GROUP                                                                                  \
    transa + g, transb + g, m + g, n + g, k + g, alpha + g, a + first, lda + g, b + first, ldb + g, \
    beta + g, c + first, ldc + g
#define F77_BATCH(p, name, bits, INT)                                                                   \
    GROUPED(p, name, bits, INT, GPB_WRAP(GPB_F77_GEMM_BATCH_PARAMS(gpb_##p, INT)), GPB_COL_MAJOR, true, \
            *group_count, GPB_WRAP(GPB_F77_GEMM_BATCH_ARGS, 1, 1),                                      \
            next(FROM_GROUP, &count, group_size + g, 1, 1), , size_t, size_t)
#define C_BATCH(p, name, bits, INT)                                                               \
    GROUPED(p, name, bits, INT, GPB_WRAP(GPB_CBLAS_GEMM_BATCH_PARAMS(gpb_##p, INT)), layout, false, \
            group_count, GPB_WRAP(GPB_CBLAS_GEMM_BATCH_ARGS), next(layout, FROM_GROUP, count, group_size + g))

#define STRIDED(p, name, bits, is_trans, at, a_scalar)                                                       \
    gpb_call call = { .symbol = #name, .width = bits, .type = GPB_TYPE_##p, .m = at m, .n = at n, .k = at k, \
                      .batch = at batch_size, .alpha = gpb_scalar_##p(a_scalar(alpha)),                      \
                      .beta = gpb_scalar_##p(a_scalar(beta)),                                                \
                      .x = { { .base = a, .ld = at lda, .stride = at stridea, .trans = is_trans(transa) },   \
                             { .base = b, .ld = at ldb, .stride = at strideb, .trans = is_trans(transb) },   \
                             { .base = c, .ld = at ldc, .stride = at stridec, .trans = 'N', .uplo = 'G' } } };
#define F77_STRIDED(p, name, bits, INT)                                                \
    void gpb_door_##name(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, INT))              \
    {                                                                                  \
        void (*next)(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, INT), size_t, size_t); \
        STRIDED(p, name, bits, gpb_letter, *, )                                        \
        GPB_GO_ON(name, next(GPB_F77_GEMM_BATCH_STRIDED_ARGS, 1, 1))                   \
    }
#define C_STRIDED(p, name, bits, INT)                                                       \
    void gpb_door_##name(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT)) \
    {                                                                                       \
        void (*next)(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));    \
        STRIDED(p, name, bits, gpb_trans, , GPB_ADDRESS_##p)                                \
        gpb_from_layout(&call, layout);                                                     \
        GPB_GO_ON(name, next(GPB_CBLAS_GEMM_BATCH_STRIDED_ARGS))                            \
    }

GPB_PRECISIONS(F77_BATCH, C_BATCH, gemm_batch)
GPB_PRECISIONS(F77_STRIDED, C_STRIDED, gemm_batch_strided)
