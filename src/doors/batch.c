/* SPDX-License-Identifier: MIT */
/* The doors of batched GEMM, with oneMKL's signatures. A group (or a strided batch) is one gpb_call; neighbouring groups of the same shape
   are joined, so that a thousand groups of one are one call. What is not computed goes to the host's function of that name, with
   pointers into the caller's own arrays. */
#include "src/doors/door.h"

/* The arrays of a grouped call, whatever their types: what one group's gpb_call is made from. */
typedef struct groups {
    const char *symbol;
    enum gpb_type type;
    int width, layout;
    bool letters;                               /* trans are Fortran's letters, else CBLAS's enumerations */
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

static gpb_call group(const groups *all, int64_t g, int64_t first)
{
    gpb_call call = { .symbol = all->symbol, .width = all->width, .type = all->type, .m = integer(all, all->m, g),
                      .n = integer(all, all->n, g), .k = integer(all, all->k, g), .batch = integer(all, all->size, g),
                      .alpha = scalar(all, all->alpha, g), .beta = scalar(all, all->beta, g) };
    call.x[GPB_A] = (gpb_matrix){ .array = all->a + first, .ld = integer(all, all->lda, g), .trans = trans(all, all->transa, g) };
    call.x[GPB_B] = (gpb_matrix){ .array = all->b + first, .ld = integer(all, all->ldb, g), .trans = trans(all, all->transb, g) };
    call.x[GPB_C] = (gpb_matrix){ .array = all->c + first, .ld = integer(all, all->ldc, g), .trans = 'N', .uplo = 'G' };
    gpb_from_layout(&call, all->layout);
    return call;
}

static bool same_shape(const gpb_call *g, const gpb_call *h)
{
    bool same = g->m == h->m && g->n == h->n && g->k == h->k && g->alpha == h->alpha && g->beta == h->beta;
    for (int x = 0; x < GPB_OPERANDS; x++) same &= g->x[x].trans == h->x[x].trans && g->x[x].ld == h->x[x].ld;
    return same;
}

/* The call of group g and of as many after it as can be joined; *joined counts them. `first` is its first member. */
static gpb_call joined_groups(const groups *all, int64_t g, int64_t first, int64_t *joined)
{
    gpb_call call = group(all, g, first);
    for (*joined = 1; call.batch > 0 && g + *joined < all->count; ++*joined) {
        gpb_call next = group(all, g + *joined, first);
        if (next.batch <= 0 || !same_shape(&call, &next)) break;
        call.batch += next.batch;
    }
    return call;
}

/* A call with an illegal group is the host's to report, before anything is computed. */
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

#define GROUPED(p, name, bits, INT, PARAMS, given_layout, given_letters, given_count, ARGS, HOST_CALL, ...)               \
    void gpb_door_##name(PARAMS)                                                                                          \
    {                                                                                                                     \
        void (*next)(PARAMS __VA_ARGS__);                                                                                 \
        const groups all = { #name, GPB_TYPE_##p, bits, given_layout, given_letters, transa, transb, m, n, k, lda, ldb, \
                             ldc, group_size, alpha, beta, (const void *const *)a, (const void *const *)b,                \
                             (const void *const *)c, given_count };                                                       \
        int64_t first = 0, joined;                                                                                        \
        *(void **)&next = gpb_next(GPB_SYMBOL_##name);                                                                    \
        if (!all_legal(&all)) next(ARGS);                                                                                 \
        else                                                                                                              \
        for (int64_t g = 0; g < all.count; g += joined) {                                                                 \
            gpb_call call = joined_groups(&all, g, first, &joined);                                                       \
            INT count = (INT)joined;                                                                                      \
            gpb_host_call visit;                                                                                              \
            if (!gpb_offload(&call, &visit)) {                                                                            \
                HOST_CALL;                                                                                                \
                gpb_offload_done(&visit);                                                                                 \
            }                                                                                                             \
            if (call.batch > 0) first += call.batch;                                                                      \
        }                                                                                                                 \
    }
#define FROM_GROUP                                                                                                        \
    transa + g, transb + g, m + g, n + g, k + g, alpha + g, a + first, lda + g, b + first, ldb + g, beta + g, c + first, ldc + g
#define F77_BATCH(p, name, bits, INT)                                                                                     \
    GROUPED(p, name, bits, INT, WRAP(GPB_F77_GEMM_BATCH_PARAMS(gpb_##p, INT)), GPB_COL_MAJOR, true, *group_count,         \
            WRAP(GPB_F77_GEMM_BATCH_ARGS, 1, 1), next(FROM_GROUP, &count, group_size + g, 1, 1), , size_t, size_t)
#define C_BATCH(p, name, bits, INT)                                                                                       \
    GROUPED(p, name, bits, INT, WRAP(GPB_CBLAS_GEMM_BATCH_PARAMS(gpb_##p, INT)), layout, false, group_count,              \
            WRAP(GPB_CBLAS_GEMM_BATCH_ARGS), next(layout, FROM_GROUP, count, group_size + g))
#define WRAP(...) __VA_ARGS__

#define STRIDED(p, name, bits, is_trans, at, a_scalar)                                                                    \
    gpb_call call = { .symbol = #name, .width = bits, .type = GPB_TYPE_##p, .m = at m, .n = at n, .k = at k,              \
                      .batch = at batch_size, .alpha = gpb_scalar_##p(a_scalar(alpha)),                                   \
                      .beta = gpb_scalar_##p(a_scalar(beta)),                                                             \
                      .x = { { .base = a, .ld = at lda, .stride = at stridea, .trans = is_trans(transa) },                \
                             { .base = b, .ld = at ldb, .stride = at strideb, .trans = is_trans(transb) },                \
                             { .base = c, .ld = at ldc, .stride = at stridec, .trans = 'N', .uplo = 'G' } } };
#define F77_STRIDED(p, name, bits, INT)                                                                                   \
    void gpb_door_##name(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, INT))                                                 \
    {                                                                                                                     \
        void (*next)(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, INT), size_t, size_t);                                    \
        STRIDED(p, name, bits, gpb_letter, *, )                                                                           \
        GPB_GO_ON(name, next(GPB_F77_GEMM_BATCH_STRIDED_ARGS, 1, 1))                                                      \
    }
#define C_STRIDED(p, name, bits, INT)                                                                                     \
    void gpb_door_##name(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT))                               \
    {                                                                                                                     \
        void (*next)(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(gpb_##p, GPB_SCALAR_##p, INT));                                  \
        STRIDED(p, name, bits, gpb_trans, , GPB_ADDRESS_##p)                                                              \
        gpb_from_layout(&call, layout);                                                                                   \
        GPB_GO_ON(name, next(GPB_CBLAS_GEMM_BATCH_STRIDED_ARGS))                                                          \
    }

GPB_PRECISIONS(F77_BATCH, C_BATCH, gemm_batch)
GPB_PRECISIONS(F77_STRIDED, C_STRIDED, gemm_batch_strided)
