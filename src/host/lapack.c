/* SPDX-License-Identifier: MIT */
/* See lapack.h. As in level3.c, integers that are passed are 64 bits wide in memory, but ipiv is the
   caller's. */
#include "src/host/lapack.h"

#include <math.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "src/host/lapack_abi.h"
#include "src/host/level3.h"
#include "src/host/next.h"

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

/* This thread is in a routine of the host that was called here. It may call others by name, which are ours.
   */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

bool gpb_lapack_inside_host(void) { return inside > 0; }

static int64_t host_factor(void *where, const gpb_factor *f)
{
    (void)where;
    static const gpb_next_names getrfs = GPB_NEXT_NAMES(getrf);
    static const gpb_next_names potrfs = GPB_NEXT_NAMES(potrf);
    int64_t info = 0;
    if (gpb_factor_is_lu(f)) {
        void (*getrf)(GPB_GETRF_PARAMS(void, int64_t));
        *(void **)&getrf = gpb_next_of(getrfs, f->type, f->width);
        inside++;
        getrf(&f->m, &f->n, f->a, &f->lda, f->ipiv, &info);
        inside--;
    } else {
        void (*potrf)(GPB_POTRF_PARAMS(void, int64_t), size_t);
        *(void **)&potrf = gpb_next_of(potrfs, f->type, f->width);
        inside++;
        potrf(&f->uplo, &f->n, f->a, &f->lda, &info, 1);
        inside--;
        if (integer(&info, f->width) == 0) return not_a_number(f);
    }
    return integer(&info, f->width);
}

void gpb_lapack_host_solve(const gpb_system *s)
{
    static const gpb_next_names getrss = GPB_NEXT_NAMES(getrs);
    static const gpb_next_names potrss = GPB_NEXT_NAMES(potrs);
    const gpb_factor *f = &s->a;
    int64_t info = 0;
    inside++;
    if (gpb_factor_is_lu(f)) {
        void (*getrs)(GPB_GETRS_PARAMS(void, int64_t), size_t);
        *(void **)&getrs = gpb_next_of(getrss, f->type, f->width);
        getrs(&s->trans, &f->n, &s->nrhs, f->a, &f->lda, f->ipiv, s->b, &s->ldb, &info, 1);
    } else {
        void (*potrs)(GPB_POTRS_PARAMS(void, int64_t), size_t);
        *(void **)&potrs = gpb_next_of(potrss, f->type, f->width);
        potrs(&f->uplo, &f->n, &s->nrhs, f->a, &f->lda, s->b, &s->ldb, &info, 1);
    }
    inside--;
}

static void host_invert(void *where, const gpb_inverse *t)
{
    (void)where;
    static const gpb_next_names trtris = GPB_NEXT_NAMES(trtri);
    int64_t info = 0;
    void (*trtri)(GPB_TRTRI_PARAMS(void, int64_t), size_t, size_t);
    *(void **)&trtri = gpb_next_of(trtris, t->type, t->width);
    trtri(&t->uplo, &t->diag, &t->n, t->a, &t->lda, &info, 1, 1);
}

static void host_square(void *where, const gpb_factor *f)
{
    (void)where;
    static const gpb_next_names lauums = GPB_NEXT_NAMES(lauum);
    int64_t info = 0;
    void (*lauum)(GPB_LAUUM_PARAMS(void, int64_t), size_t);
    *(void **)&lauum = gpb_next_of(lauums, f->type, f->width);
    lauum(&f->uplo, &f->n, f->a, &f->lda, &info, 1);
}

void gpb_lapack_host_triangular(void *where, const gpb_triangular *t)
{
    (void)where;
    gpb_host_triangular(t);
}

void gpb_lapack_host_multiply(void *where, const gpb_call *call)
{
    (void)where;
    gpb_host_multiply(call);
}

void gpb_lapack_host_swap(void *where, const gpb_factor *f, void *a, int64_t lda, int64_t cols,
                          int64_t first, int64_t last, bool backwards)
{
    static const gpb_next_names laswps = GPB_NEXT_NAMES(laswp);
    const int64_t k1 = first + 1, incx = backwards ? -1 : 1;
    void (*laswp)(GPB_LASWP_PARAMS(void, int64_t));
    (void)where;
    *(void **)&laswp = gpb_next_of(laswps, f->type, f->width);
    if (cols > 0) laswp(&cols, a, &lda, &k1, &last, f->ipiv, &incx);
}

const gpb_lapack_parts gpb_lapack_host = { .leaf = INT64_MAX, .factor = host_factor, .invert = host_invert,
                                           .square = host_square, GPB_LAPACK_HOST_LEVEL3 };

static void raise_pivots(void *ipiv, int width, int64_t count, int64_t by)
{
    for (int64_t i = 0; i < count; i++)
        if (width == 64) ((int64_t *)ipiv)[i] += by;
        else ((int32_t *)ipiv)[i] += (int32_t)by;
}

/* All but the first block, which is factored already, with that INFO. */
static int64_t factor_rest(const gpb_factor *f, const gpb_factor_halves *to, int64_t info,
                           const gpb_lapack_parts *parts)
{
    const int64_t order = gpb_factor_order(f), half = order - gpb_factor_order(&to->second);
    const bool lu = gpb_factor_is_lu(f);
    if (lu) {
        void *beside = (char *)f->a + half * f->lda * (int64_t)gpb_type_bytes(f->type);
        parts->swap(parts->where, f, beside, f->lda, to->second.n, 0, half, false);
    }
    parts->triangular(parts->where, &to->triangular);
    parts->multiply(parts->where, &to->product);
    const int64_t later = gpb_lapack_factor(&to->second, parts);
    if (lu) {
        if (!parts->counts_from_top) raise_pivots(to->second.ipiv, f->width, order - half, half);
        parts->swap(parts->where, f, f->a, f->lda, half, half, order, false);
    }
    return info ? info : later ? later + half : 0;
}

static int64_t factor_panel(const gpb_factor *f, const gpb_lapack_parts *parts)
{
    if (f->n <= max(1, parts->leaf)) return parts->factor(parts->where, f);
    const gpb_factor_halves to = gpb_factor_halve_panel(f);
    const int64_t info = factor_panel(&to.first, parts);
    if (info) return info;
    parts->multiply(parts->where, &to.product);
    if (to.beyond.m) parts->multiply(parts->where, &to.beyond);
    const int64_t later = factor_panel(&to.second, parts);
    return later ? later + to.first.n : 0;
}

int64_t gpb_lapack_factor(const gpb_factor *f, const gpb_lapack_parts *parts)
{
    if (!gpb_factor_is_lu(f) && f->n <= parts->panels) return factor_panel(f, parts);
    if (gpb_factor_order(f) <= max(1, parts->leaf)) return parts->factor(parts->where, f);
    const gpb_factor_halves to = gpb_factor_halve(f);
    const int64_t info = gpb_lapack_factor(&to.first, parts);
    if (info && !gpb_factor_is_lu(f)) return info;
    return factor_rest(f, &to, info, parts);
}

/* The pivots of the columns that are missing are chosen anew, because rounding may choose others. So the
   first columns get back the order of rows that they had before these. */
int64_t gpb_lapack_go_on(const gpb_factor *f, int64_t done)
{
    const gpb_lapack_parts *host = &gpb_lapack_host;
    const int64_t order = gpb_factor_order(f);
    if (done == 0) return host->factor(NULL, f);
    if (done >= f->n) return 0;
    const bool lu = gpb_factor_is_lu(f);
    if (lu && done >= order) {                 /* U alone is missing */
        const gpb_triangular u = gpb_factor_cut(f, order).triangular;
        void *beside = (char *)f->a + done * f->lda * (int64_t)gpb_type_bytes(f->type);
        gpb_triangular rest = u;
        rest.b = beside;
        rest.n = f->n - done;
        host->swap(NULL, f, beside, f->lda, rest.n, 0, order, false);
        host->triangular(NULL, &rest);
        return 0;
    }
    gpb_factor_halves to = gpb_factor_cut(f, done);
    if (lu) host->swap(NULL, f, f->a, f->lda, done, done, order, true);
    /* Of L's columns the part below the first block is there. */
    if (f->uplo == 'L') to.triangular.m = 0;
    return factor_rest(f, &to, 0, host);
}

void gpb_lapack_solve(const gpb_system *s, const gpb_lapack_parts *parts)
{
    const gpb_system_solves to = gpb_system_solve(s);
    const gpb_factor *f = &s->a;
    const bool lu = gpb_factor_is_lu(f), transposed = s->trans != 'N';
    if (lu && !transposed) parts->swap(parts->where, f, s->b, s->ldb, s->nrhs, 0, f->n, false);
    parts->triangular(parts->where, &to.first);
    parts->triangular(parts->where, &to.second);
    if (lu && transposed) parts->swap(parts->where, f, s->b, s->ldb, s->nrhs, 0, f->n, true);
}

int64_t gpb_lapack_singular(enum gpb_type type, const void *a, int64_t n, int64_t lda)
{
    const size_t bytes = gpb_type_bytes(type);
    for (int64_t i = 0; i < n; i++)
        if (gpb_type_is_zero(type, (const char *)a + (size_t)(i + i * lda) * bytes)) return i + 1;
    return 0;
}

static void invert(const gpb_inverse *t, const gpb_lapack_parts *parts)
{
    if (t->n <= max(1, parts->leaf)) {
        parts->invert(parts->where, t);
        return;
    }
    const gpb_inverse_halves to = gpb_inverse_halve(t);
    parts->triangular(parts->where, &to.left);
    parts->triangular(parts->where, &to.right);
    invert(&to.first, parts);
    invert(&to.second, parts);
}

int64_t gpb_lapack_invert(const gpb_inverse *t, const gpb_lapack_parts *parts)
{
    const int64_t info = t->diag == 'N' ? gpb_lapack_singular(t->type, t->a, t->n, t->lda) : 0;
    if (!info && t->n) invert(t, parts);
    return info;
}

int64_t gpb_lapack_triangular(const gpb_triangular *s, const gpb_lapack_parts *parts)
{
    const int64_t info = s->diag == 'N' ? gpb_lapack_singular(s->type, s->a, s->m, s->lda) : 0;
    if (!info) parts->triangular(parts->where, s);
    return info;
}

/* Moves what of L lies in those columns to `work`, which has the rows from `first` on. Leaves zeros, which
   are the inverse of U there. */
static void take_out(const gpb_inverse *u, int64_t first, int64_t columns, char *work)
{
    const size_t bytes = gpb_type_bytes(u->type), ld = (size_t)(u->n - first) * bytes;
    for (int64_t j = 0; j < columns; j++) {
        const size_t above = (size_t)(j + 1) * bytes;
        if (above == ld) return;
        char *below = gpb_inverse_at(u, first + j + 1, first + j);
        memcpy(work + (size_t)j * ld + above, below, ld - above);
        memset(below, 0, ld - above);
    }
}

/* X L = U^-1 from the last block of columns before `end` to the first, X in the place of U^-1. The columns
   from `end` on are X's. */
static void divide_by_l(const gpb_inverse *u, int64_t end, char *work, int64_t width,
                        const gpb_lapack_parts *parts)
{
    for (int64_t last = end, first; last > 0; last = first) {
        first = (last - 1) / width * width;
        take_out(u, first, last - first, work);
        const gpb_inverse_division by_l = gpb_inverse_divide(u, first, last, work, u->n - first);
        if (by_l.product.k) parts->multiply(parts->where, &by_l.product);
        parts->triangular(parts->where, &by_l.divide);
    }
}

/* Undoes the row exchanges of A as column exchanges of its inverse. */
static void swap_columns(const gpb_inverse *u, const void *ipiv, char *work)
{
    const size_t column = (size_t)u->n * gpb_type_bytes(u->type);
    for (int64_t j = u->n - 2; j >= 0; j--) {
        const int64_t other = integer((const char *)ipiv + j * (u->width / 8), u->width) - 1;
        if (other == j) continue;
        memcpy(work, gpb_inverse_at(u, 0, j), column);
        memcpy(gpb_inverse_at(u, 0, j), gpb_inverse_at(u, 0, other), column);
        memcpy(gpb_inverse_at(u, 0, other), work, column);
    }
}

static gpb_inverse u_of(const gpb_factor *lu)
{
    return (gpb_inverse){ .symbol = lu->symbol, .type = lu->type, .width = lu->width, .uplo = 'U',
                          .diag = 'N', .n = lu->n, .a = lu->a, .lda = lu->lda };
}

int64_t gpb_lapack_invert_lu(const gpb_factor *lu, void *work, int64_t columns, const gpb_lapack_parts *parts)
{
    const gpb_inverse u = u_of(lu);
    const int64_t info = gpb_lapack_invert(&u, parts);
    if (info || !u.n) return info;
    divide_by_l(&u, u.n, work, columns, parts);
    swap_columns(&u, lu->ipiv, work);
    return 0;
}

/* All but the first `done` columns of a triangle's inverse, or the last ones of a lower one's. */
static void invert_rest(const gpb_inverse *t, int64_t done)
{
    const gpb_lapack_parts *host = &gpb_lapack_host;
    if (done >= t->n) return;
    const bool lower = t->uplo == 'L';
    const gpb_inverse_columns rest = gpb_inverse_next(t, lower ? 0 : done, lower ? t->n - done : t->n);
    host->triangular(NULL, &rest.multiply);
    host->triangular(NULL, &rest.divide);
    host->invert(NULL, &rest.block);
}

void gpb_lapack_invert_go_on(const gpb_inverse *triangle, int64_t done) { invert_rest(triangle, done); }

void gpb_lapack_invert_lu_go_on(const gpb_factor *lu, int64_t done, void *work, int64_t columns)
{
    const gpb_inverse u = u_of(lu);
    invert_rest(&u, done);
    divide_by_l(&u, min(u.n, 2 * u.n - done), work, columns, &gpb_lapack_host);
    swap_columns(&u, lu->ipiv, work);
}

void gpb_lapack_invert_cholesky_go_on(const gpb_factor *f, int64_t done)
{
    const gpb_inverse w = { .symbol = f->symbol, .type = f->type, .width = f->width, .uplo = f->uplo,
                            .diag = 'N', .n = f->n, .a = f->a, .lda = f->lda };
    const int64_t there = max(0, done - f->n);
    invert_rest(&w, done);
    if (there == f->n) return;
    gpb_factor behind = *f;
    behind.m = behind.n = f->n - there;
    behind.a = gpb_inverse_at(&w, there, there);
    const gpb_triangular above = { .symbol = f->symbol, .type = f->type, .width = f->width, .side = 'R',
                                   .uplo = 'U', .trans = gpb_type_is_complex(f->type) ? 'C' : 'T',
                                   .diag = 'N', .m = there, .n = behind.n, .alpha = 1, .a = behind.a,
                                   .lda = f->lda, .b = gpb_inverse_at(&w, 0, there), .ldb = f->lda };
    if (f->uplo == 'U' && there) gpb_lapack_host.triangular(NULL, &above);
    gpb_lapack_host.square(NULL, &behind);
}

void gpb_lapack_square(const gpb_factor *f, const gpb_lapack_parts *parts)
{
    if (f->n <= max(1, parts->leaf)) {
        parts->square(parts->where, f);
        return;
    }
    const gpb_factor_halves to = gpb_factor_multiply_halve(f);
    gpb_lapack_square(&to.first, parts);
    parts->multiply(parts->where, &to.product);
    parts->triangular(parts->where, &to.triangular);
    gpb_lapack_square(&to.second, parts);
}

int64_t gpb_lapack_invert_cholesky(const gpb_factor *f, const gpb_lapack_parts *parts)
{
    const gpb_inverse triangle = { .symbol = f->symbol, .type = f->type, .width = f->width, .uplo = f->uplo,
                                   .diag = 'N', .n = f->n, .a = f->a, .lda = f->lda };
    const int64_t info = gpb_lapack_invert(&triangle, parts);
    if (!info) gpb_lapack_square(f, parts);
    return info;
}
