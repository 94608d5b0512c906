/* SPDX-License-Identifier: MIT */
/* The doors of batched GEMM, with oneMKL's signatures. A group, or a strided batch, is one gpb_call.
   Neighbouring groups of the same shape are joined, so that a thousand groups of one become one call. What we
   do not compute goes to the host's function of the same name, with pointers into the caller's own arrays. */
#include "src/doors/door.h"

/* The arrays of a grouped call, whatever their types. One group's gpb_call is made from them. */
typedef struct groups {
    const char *symbol;
    enum gpb_type type;
    int width, layout;
    bool letters;                               /* transa and transb are Fortran's letters, else CBLAS's
                                                   enumerations */
    const void *transa, *transb, *m, *n, *k, *lda, *ldb, *ldc, *size, *alpha, *beta;
    const void *const *a, *const *b, *const *c;
    int64_t count;
} groups;

static int64_t integer(const groups *all, const void *array, int64_t g)
{
    return all->width == 64 ? ((const int64_t *)array)[g] : ((const int32_t *)array)[g];
}

static char trans(const groups *all, const void *array, int64_t g)
{
    return all->letters ? gpb_letter((const char *)array + g) : gpb_trans(((const int *)array)[g]);
}

static gpb_scalar scalar(const groups *all, const void *array, int64_t g)
{
    const char *at = (const char *)array + (size_t)g * gpb_type_bytes(all->type);
    switch (all->type) {
    case GPB_TYPE_s: return gpb_scalar_s(at);
    case GPB_TYPE_d: return gpb_scalar_d(at);
    case GPB_TYPE_c: return gpb_scalar_c(at);
    default:         return gpb_scalar_z(at);
    }
}

static gpb_matrix operand(const groups *all, const void *const *array, const void *ld, int64_t g,
                          int64_t first)
{
    return (gpb_matrix){ .array = array + first, .ld = integer(all, ld, g), .trans = 'N' };
}

static gpb_call group(const groups *all, int64_t g, int64_t first)
{
    gpb_call call = { .symbol = all->symbol, .width = all->width, .type = all->type };
    call.m = integer(all, all->m, g);
    call.n = integer(all, all->n, g);
    call.k = integer(all, all->k, g);
    call.batch = integer(all, all->size, g);
    call.alpha = scalar(all, all->alpha, g);
    call.beta = scalar(all, all->beta, g);
    call.x[GPB_A] = operand(all, all->a, all->lda, g, first);
    call.x[GPB_B] = operand(all, all->b, all->ldb, g, first);
    call.x[GPB_C] = operand(all, all->c, all->ldc, g, first);
    call.x[GPB_A].trans = trans(all, all->transa, g);
    call.x[GPB_B].trans = trans(all, all->transb, g);
    call.x[GPB_C].uplo = 'G';
    gpb_from_layout(&call, all->layout);
    return call;
}

static bool same_shape(const gpb_call *g, const gpb_call *h)
{
    bool same = g->m == h->m && g->n == h->n && g->k == h->k && g->alpha == h->alpha && g->beta == h->beta;
    for (int x = 0; x < GPB_OPERANDS; x++) same &= g->x[x].trans == h->x[x].trans && g->x[x].ld == h->x[x].ld;
    return same;
}

/* Consecutive groups that are one call. All zero is the place before the first. */
typedef struct join {
    int64_t g, count;                           /* first group, number of groups */
    int64_t first, members;                     /* first member, number of members */
} join;

/* Moves on to the next groups that can be joined, and makes *call of them. False: there are no more
   groups. */
static bool next_join(const groups *all, join *at, gpb_call *call)
{
    at->g += at->count;
    at->first += at->members;
    if (at->g >= all->count) return false;
    *call = group(all, at->g, at->first);
    for (at->count = 1; call->batch > 0 && at->g + at->count < all->count; at->count++) {
        const gpb_call next = group(all, at->g + at->count, at->first);
        if (next.batch <= 0 || !same_shape(call, &next)) break;
        call->batch += next.batch;
    }
    at->members = call->batch > 0 ? call->batch : 0;
    return true;
}

/* The host must report an illegal group before anything is computed. */
static bool all_legal(const groups *all)
{
    bool legal = all->count >= 0;
    for (int64_t g = 0, first = 0; legal && g < all->count; g++) {
        gpb_call call = group(all, g, first);
        legal = gpb_offload_legal(&call);
        first += legal ? call.batch : 0;
    }
    return legal;
}

#define GROUPED(p, name, bits, INT, PARAMS, given_layout, given_letters, given_count, ARGS, HOST_CALL, ...) \
    void gpb_door_##name(PARAMS)                                                                            \
    {                                                                                                       \
        void (*next)(PARAMS __VA_ARGS__);                                                                   \
        const groups all = { #name, GPB_TYPE_##p, bits, given_layout, given_letters,                        \
                             transa, transb, m, n, k, lda, ldb, ldc, group_size, alpha, beta,               \
                             (const void *const *)a, (const void *const *)b, (const void *const *)c,        \
                             given_count };                                                                 \
        gpb_host_call declined;                                                                             \
        gpb_call call;                                                                                      \
        *(void **)&next = gpb_next(GPB_SYMBOL_##name);                                                      \
        if (!all_legal(&all)) {                                                                             \
            next(ARGS);                                                                                     \
            return;                                                                                         \
        }                                                                                                   \
        for (join at = { 0 }; next_join(&all, &at, &call);) {                                               \
            const int64_t g = at.g, first = at.first;                                                       \
            const INT count = (INT)at.count;                                                                \
            if (gpb_offload(&call, &declined)) continue;                                                    \
            HOST_CALL;                                                                                      \
            gpb_offload_done(&declined);                                                                    \
        }                                                                                                   \
    }
#define FROM_GROUP                                                                                  \
    transa + g, transb + g, m + g, n + g, k + g, alpha + g, a + first, lda + g, b + first, ldb + g, \
    beta + g, c + first, ldc + g
#define F77_BATCH(p, name, bits, INT)                                                               \
    GROUPED(p, name, bits, INT, WRAP(GPB_F77_GEMM_BATCH_PARAMS(gpb_##p, INT)), GPB_COL_MAJOR, true, \
            *group_count, WRAP(GPB_F77_GEMM_BATCH_ARGS, 1, 1),                                      \
            next(FROM_GROUP, &count, group_size + g, 1, 1), , size_t, size_t)
#define C_BATCH(p, name, bits, INT)                                                                          \
    GROUPED(p, name, bits, INT, WRAP(GPB_CBLAS_GEMM_BATCH_PARAMS(gpb_##p, INT)), layout, false, group_count, \
            WRAP(GPB_CBLAS_GEMM_BATCH_ARGS), next(layout, FROM_GROUP, count, group_size + g))
#define WRAP(...) __VA_ARGS__

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
