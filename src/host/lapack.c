/* SPDX-License-Identifier: MIT */
/* See lapack.h. As in level3.c, integers that are passed are 64 bits wide in memory, but ipiv is the
   caller's. */
#include "src/host/lapack.h"

#include <math.h>

#include "dispatch/numbers.h"
#include "src/host/lapack_abi.h"
#include "src/host/next.h"

static void *routine(const enum gpb_symbol of[GPB_TYPES][2], const gpb_factor *f)
{
    return gpb_next(of[f->type][f->width == 64]);
}

/* A routine's symbols, by type and width of integers. */
#define OF_EACH(stem)                                                   \
    [GPB_TYPE_s] = { GPB_SYMBOL_s##stem##_, GPB_SYMBOL_s##stem##_64_ }, \
    [GPB_TYPE_d] = { GPB_SYMBOL_d##stem##_, GPB_SYMBOL_d##stem##_64_ }, \
    [GPB_TYPE_c] = { GPB_SYMBOL_c##stem##_, GPB_SYMBOL_c##stem##_64_ }, \
    [GPB_TYPE_z] = { GPB_SYMBOL_z##stem##_, GPB_SYMBOL_z##stem##_64_ }

/* An INTEGER that the host has written. */
static int64_t integer(const void *at, int width)
{
    return width == 64 ? *(const int64_t *)at : *(const int32_t *)at;
}

/* The number of the first element of the diagonal of L that is NaN, else 0. OpenBLAS 0.3.21 factors on where
   netlib's INFO tells it. */
static int64_t not_a_number(const gpb_factor *f)
{
    const size_t bytes = gpb_type_bytes(f->type);
    for (int64_t i = 0; i < f->n; i++) {
        const char *real = (const char *)f->a + (size_t)(i + i * f->lda) * bytes;
        const bool single = gpb_type_real(f->type) == GPB_TYPE_s;
        if (isnan(single ? *(const float *)real : *(const double *)real)) return i + 1;
    }
    return 0;
}

int64_t gpb_lapack_host_factor(const gpb_factor *f)
{
    static const enum gpb_symbol getrfs[GPB_TYPES][2] = { OF_EACH(getrf) };
    static const enum gpb_symbol potrfs[GPB_TYPES][2] = { OF_EACH(potrf) };
    int64_t info = 0;
    if (gpb_factor_is_lu(f)) {
        void (*getrf)(GPB_GETRF_PARAMS(void, int64_t));
        *(void **)&getrf = routine(getrfs, f);
        getrf(&f->m, &f->n, f->a, &f->lda, f->ipiv, &info);
    } else {
        void (*potrf)(GPB_POTRF_PARAMS(void, int64_t), size_t);
        *(void **)&potrf = routine(potrfs, f);
        potrf(&f->uplo, &f->n, f->a, &f->lda, &info, 1);
        if (integer(&info, f->width) == 0) return not_a_number(f);
    }
    return integer(&info, f->width);
}

/* Exchanges rows first + 1 to last of `cols` columns at a, as ipiv says. */
static void swap_rows(const gpb_factor *f, void *a, int64_t lda, int64_t cols, int64_t first, int64_t last,
                      bool backwards)
{
    static const enum gpb_symbol laswps[GPB_TYPES][2] = { OF_EACH(laswp) };
    const int64_t k1 = first + 1, incx = backwards ? -1 : 1;
    void (*laswp)(GPB_LASWP_PARAMS(void, int64_t));
    *(void **)&laswp = routine(laswps, f);
    if (cols > 0) laswp(&cols, a, &lda, &k1, &last, f->ipiv, &incx);
}

static void raise_pivots(void *ipiv, int width, int64_t count, int64_t by)
{
    for (int64_t i = 0; i < count; i++)
        if (width == 64) ((int64_t *)ipiv)[i] += by;
        else ((int32_t *)ipiv)[i] += (int32_t)by;
}

int64_t gpb_lapack_factor(const gpb_factor *f, const gpb_lapack_parts *parts)
{
    const int64_t order = gpb_factor_order(f);
    const bool lu = gpb_factor_is_lu(f);
    if (order <= max(1, parts->leaf)) return parts->factor(f);
    const gpb_factor_halves to = gpb_factor_halve(f);
    const int64_t half = order - gpb_factor_order(&to.second), rest = to.second.n;
    const int64_t info = gpb_lapack_factor(&to.first, parts);
    if (info && !lu) return info;
    if (lu) {
        void *beside = (char *)f->a + half * f->lda * (int64_t)gpb_type_bytes(f->type);
        swap_rows(f, beside, f->lda, rest, 0, half, false);
    }
    parts->solve(&to.solve);
    parts->multiply(&to.product);
    const int64_t later = gpb_lapack_factor(&to.second, parts);
    if (lu) {
        raise_pivots(to.second.ipiv, f->width, order - half, half);
        swap_rows(f, f->a, f->lda, half, half, order, false);
    }
    return info ? info : later ? later + half : 0;
}

void gpb_lapack_solve(const gpb_system *s, const gpb_lapack_parts *parts)
{
    const gpb_system_solves to = gpb_system_solve(s);
    const bool lu = gpb_factor_is_lu(&s->a), transposed = s->trans != 'N';
    if (lu && !transposed) swap_rows(&s->a, s->b, s->ldb, s->nrhs, 0, s->a.n, false);
    parts->solve(&to.first);
    parts->solve(&to.second);
    if (lu && transposed) swap_rows(&s->a, s->b, s->ldb, s->nrhs, 0, s->a.n, true);
}
