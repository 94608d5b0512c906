/* SPDX-License-Identifier: MIT */
/* The doors of batched GEMM, with oneMKL's signatures. A group (or a strided batch) is one gpb_call; neighbouring groups of the same shape
   are joined, so that a thousand groups of one are one call. What is not computed goes to the host's function of that name, with
   pointers into the caller's own arrays. */
#include "src/doors/door.h"

/* The arrays of a grouped call, whatever their types: what one group's gpb_call is made from. */
typedef struct groups {
    const char *symbol;
    char precision;
    int width, layout;
    bool letters;                               /* trans are Fortran's letters, else CBLAS's enumerations */
    const void *transa, *transb, *m, *n, *k, *lda, *ldb, *ldc, *size, *alpha, *beta;
    const void *const *a, *const *b;
    void *const *c;
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

static double scalar(const groups *all, const void *array, int64_t g)
{
    switch (all->precision) {
    case 's': return gpb_scalar_s((const float *)array + g);
    case 'd': return gpb_scalar_d((const double *)array + g);
    case 'c': return gpb_scalar_c((const float *)array + 2 * g);
    default:  return gpb_scalar_z((const double *)array + 2 * g);
    }
}

static gpb_call group(const groups *all, int64_t g, int64_t first)
{
    gpb_call call = { .symbol = all->symbol, .width = all->width, .precision = all->precision, .transa = trans(all, all->transa, g),
                      .transb = trans(all, all->transb, g), .uplo = 'G', .m = integer(all, all->m, g), .n = integer(all, all->n, g),
                      .k = integer(all, all->k, g), .lda = integer(all, all->lda, g), .ldb = integer(all, all->ldb, g),
                      .ldc = integer(all, all->ldc, g), .alpha = scalar(all, all->alpha, g), .beta = scalar(all, all->beta, g),
                      .a_array = all->a + first, .b_array = all->b + first, .c_array = all->c + first,
                      .batch = integer(all, all->size, g) };
    gpb_from_layout(&call, all->layout);
    return call;
}

static bool same_shape(const gpb_call *g, const gpb_call *h)
{
    return g->transa == h->transa && g->transb == h->transb && g->m == h->m && g->n == h->n && g->k == h->k && g->lda == h->lda
           && g->ldb == h->ldb && g->ldc == h->ldc && g->alpha == h->alpha && g->beta == h->beta;
}

/* The call of group g and of as many after it as can be joined; *joined counts them. `first` is its first member. */
static gpb_call joined_groups(const groups *all, int64_t g, int64_t first, int64_t *joined)
{
    gpb_call call = group(all, g, first);
    const bool real = all->precision == 's' || all->precision == 'd';       /* a complex alpha is more than gpb_call tells */
    for (*joined = 1; real && call.batch > 0 && g + *joined < all->count; ++*joined) {
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
        const groups all = { #name, #p[0], bits, given_layout, given_letters, transa, transb, m, n, k, lda, ldb, ldc,     \
                             group_size, alpha, beta, (const void *const *)a, (const void *const *)b, (void *const *)c,   \
                             given_count };                                                                               \
        int64_t first = 0, joined;                                                                                        \
        *(void **)&next = gpb_next(GPB_SYMBOL_##name);                                                                    \
        if (!all_legal(&all)) next(ARGS);                                                                                 \
        else                                                                                                              \
        for (int64_t g = 0; g < all.count; g += joined) {                                                                 \
            gpb_call call = joined_groups(&all, g, first, &joined);                                                       \
            INT count = (INT)joined;                                                                                      \
            gpb_visit visit;                                                                                              \
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
    gpb_call call = { .symbol = #name, .width = bits, .precision = #p[0], .transa = is_trans(transa),                     \
                      .transb = is_trans(transb), .uplo = 'G', .m = at m, .n = at n, .k = at k, .lda = at lda,            \
                      .ldb = at ldb, .ldc = at ldc, .alpha = gpb_scalar_##p(a_scalar(alpha)),                             \
                      .beta = gpb_scalar_##p(a_scalar(beta)), .a = a, .b = b, .c = c, .batch = at batch_size,             \
                      .stride_a = at stridea, .stride_b = at strideb, .stride_c = at stridec };
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
