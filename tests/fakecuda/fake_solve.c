/* SPDX-License-Identifier: MIT */
/* The kernels of LAPACK's solvers (kernels/solve.def): whatever they may touch is translated and
   bounds-checked, and what they count on is checked. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/digest.h"
#include "tests/fakecuda/fakecuda.h"

/* The largest triangle of any type, the widest panel, and panels that gpb_<p>swap can follow. */
enum { MOST = GPB_TRIANGLE_ORDER(4), WIDEST = GPB_PANEL_COLUMNS(4), WIDEST_MOVES = GPB_SWAP_THREADS / 2 };
enum { VECTORS = 4 };                    /* of a row of columns that are solved together */

#define LETTER s
#define ELEMENT float
#include "tests/fakecuda/fake_solve.h"
#define LETTER d
#define ELEMENT double
#include "tests/fakecuda/fake_solve.h"
#define LETTER c
#define ELEMENT float _Complex
#include "tests/fakecuda/fake_solve.h"
#define LETTER z
#define ELEMENT double _Complex
#include "tests/fakecuda/fake_solve.h"

static const struct solver {
    int (*panel)(int64_t m, int n, void *a, int64_t lda, int64_t *pivots);
    int (*cholesky)(int n, void *a, int64_t rs, int64_t cs, void *below, int64_t rows);
    void (*substitute)(const gpb_triangle_args *g, const void *l, void *b);
    void (*multiply)(const gpb_triangle_args *g, const void *l, const void *f, int64_t rsf, int64_t csf,
                     void *b);
    void (*trsv)(const gpb_triangle_args *g, const void *l, void *b);
    void (*system)(const gpb_systems_args *g, const void *l, const void *b, void *x, void *work);
} solvers[GPB_TYPES] = {
#define TYPE(p, type, bytes, flops, kind) { panel_##p, cholesky_##p, substitute_##p, multiply_##p, trsv_##p, \
                                                system_##p },
#include "dispatch/type.def"
#undef TYPE
};

static int bytes_of(const gpb_fake_kernel *kernel) { return (int)gpb_type_bytes(kernel->type); }

/* Bytes low to high (exclusive) after that address, which holds numbers of `unit` bytes. */
static void *numbers_at(const gpb_fake_kernel *kernel, int device, const void *at, int unit, int64_t low,
                        int64_t high)
{
    if ((uintptr_t)at % (unsigned)unit)
        gpb_fake_die("MISALIGNED: %s uses %p", kernel->symbol, at);
    return gpb_fake_translate(device, (CUdeviceptr)at, low, high, kernel->symbol);
}

static int32_t *ints_at(const gpb_fake_kernel *kernel, int device, const void *at, int64_t first,
                        int64_t last)
{
    enum { BYTES = sizeof(int32_t) };
    return numbers_at(kernel, device, at, BYTES, first * BYTES, last * BYTES);
}

/* The lower triangle of an n x n matrix, without its diagonal if that is not touched. No element is farther
   away than its corners. */
static void *triangle_at(const gpb_fake_kernel *kernel, int device, const void *at, int n, int64_t rs,
                         int64_t cs, bool unit)
{
    const int64_t corners[3] = { unit ? rs : 0, (n - 1) * rs, (n - 1) * rs + (unit ? n - 2 : n - 1) * cs };
    const int bytes = bytes_of(kernel);
    int64_t low = corners[0], high = corners[0];
    if (unit && n == 1)
        return NULL;
    for (int i = 1; i < 3; i++) {
        low = corners[i] < low ? corners[i] : low;
        high = corners[i] > high ? corners[i] : high;
    }
    return numbers_at(kernel, device, at, (int)gpb_type_real_bytes(kernel->type), low * bytes,
                      (high + 1) * bytes);
}

static void lower(int32_t *info, int64_t to) { *info = to < *info ? (int32_t)to : *info; }

/* Which row lay, before the first `count` exchanges, where row `at` lies now. */
static int64_t row_before(const int64_t *pivots, int64_t at, int count)
{
    for (int j = count - 1; j >= 0; j--)
        at = at == j ? pivots[j] : at == pivots[j] ? j : at;
    return at;
}

static int64_t row_after(const int64_t *pivots, int64_t at, int count)
{
    for (int j = 0; j < count; j++)
        at = at == j ? pivots[j] : at == pivots[j] ? j : at;
    return at;
}

/* Blocks count on the counter's value, and leave it higher. */
static void arrive(const gpb_fake_kernel *kernel, int device, const uint32_t *at, uint32_t arrived,
                   int64_t blocks)
{
    uint32_t *arrivals = (uint32_t *)ints_at(kernel, device, at, 0, 1);
    if (*arrivals != arrived)
        gpb_fake_die("BAD LAUNCH of %s: %u arrivals before it, not %u", kernel->symbol, *arrivals, arrived);
    *arrivals += (uint32_t)blocks;
}

/* Blocks wait for words with the numbers of their columns, so none may be there before, and none at all
   before a call's first panel, because the others have higher numbers; and they leave some. */
static void meet(const gpb_fake_kernel *kernel, int device, const gpb_panel_args *g)
{
    const int64_t blocks = GPB_PANEL_BLOCKS(g->m), words = 2 * GPB_PANEL_SLOT_BYTES * blocks / 8;
    uint64_t *slots = numbers_at(kernel, device, g->slots, sizeof *slots, 0, 8 * words);
    for (int64_t i = 0; i < words; i++) {
        const uint32_t number = (uint32_t)(slots[i] >> 32), column = number - g->arrived;
        if ((column >= 1 && column <= (uint32_t)g->n) || (!g->arrived && number))
            gpb_fake_die("BAD LAUNCH of %s: a slot has the number %u already", kernel->symbol, number);
        slots[i] = (uint64_t)(g->arrived + (uint32_t)g->n) << 32;
    }
    arrive(kernel, device, g->arrivals, g->arrived, blocks * (g->n + 1));
}

void gpb_fake_panel(const gpb_fake_kernel *kernel, int device, const gpb_panel_args *g)
{
    const int n = g->n;
    if (n > GPB_PANEL_COLUMNS(bytes_of(kernel)) || g->m < n || g->lda < g->m || g->first < 0
        || g->first + g->m > INT32_MAX)
        gpb_fake_die("BAD LAUNCH of %s: %lldx%d from %d on, lda %lld", kernel->symbol, (long long)g->m, n,
                     g->first, (long long)g->lda);
    void *a = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a, g->m, n, 1, g->lda, kernel->symbol);
    int32_t *ipiv = ints_at(kernel, device, g->ipiv, 0, n), *width = ints_at(kernel, device, g->width, 0, n);
    int32_t *info = ints_at(kernel, device, g->info, 0, 1);
    gpb_row_move *moves = (gpb_row_move *)ints_at(kernel, device, g->moves, 0, 4 * n);
    int64_t pivots[WIDEST];
    if (kernel->role == GPB_FAKE_panel_grid)
        meet(kernel, device, g);
    const int singular = solvers[kernel->type].panel(g->m, n, a, g->lda, pivots);
    for (int j = 0; j < n; j++) {
        ipiv[j] = (int32_t)(g->first + pivots[j] + 1);
        moves[j] = (gpb_row_move){ g->first + j, (int32_t)(g->first + row_before(pivots, pivots[j], j)) };
        moves[n + j] = (gpb_row_move){ (int32_t)(g->first + row_after(pivots, j, n)), g->first + j };
    }
    width[0] = width[n - 1] = n;
    if (singular)
        lower(info, g->first + singular);
}

static void check_order(const gpb_fake_kernel *kernel, int n, int most)
{
    if (n > most)
        gpb_fake_die("BAD LAUNCH of %s: n=%d", kernel->symbol, n);
}

void gpb_fake_cholesky(const gpb_fake_kernel *kernel, int device, const gpb_cholesky_args *g)
{
    check_order(kernel, g->n, GPB_BLOCK_ORDER(bytes_of(kernel)));
    void *a = triangle_at(kernel, device, g->a, g->n, g->rs, g->cs, false);
    int32_t *info = ints_at(kernel, device, g->info, 0, 1);
    const int64_t e = bytes_of(kernel);
    void *below = NULL;
    if (g->below)
        below = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a + (CUdeviceptr)(g->n * g->rs * e),
                                   g->below, g->n, g->rs, g->cs, kernel->symbol);
    arrive(kernel, device, g->arrivals, g->arrived, GPB_CHOLESKY_BLOCKS(g->below, e));
    const int failed = solvers[kernel->type].cholesky(g->n, a, g->rs, g->cs, below, g->below);
    if (failed)
        lower(info, g->first + failed);
}

void gpb_fake_substitute(const gpb_fake_kernel *kernel, int device, const gpb_triangle_args *g)
{
    check_order(kernel, g->n, GPB_TRIANGLE_ORDER(bytes_of(kernel)));
    const void *l = triangle_at(kernel, device, g->l, g->n, g->rsl, g->csl, g->unit != 0);
    void *b = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->b, g->n, g->cols, g->rsb, g->csb,
                                 kernel->symbol);
    solvers[kernel->type].substitute(g, l, b);
}

/* The triangles in any order: the last one first. */
void gpb_fake_triangles(const gpb_fake_kernel *kernel, int device, const gpb_multiply_args *g)
{
    const int64_t e = bytes_of(kernel);
    check_order(kernel, g->of.n, GPB_TRIANGLE_ORDER(e));
    check_order(kernel, g->first, g->of.n);
    const int64_t triangles = 1 + (g->order - g->first + g->of.n - 1) / g->of.n;
    for (int64_t z = triangles - 1; z >= 0; z--) {
        const int64_t at = z ? g->first + (z - 1) * g->of.n : 0, left = g->order - at;
        gpb_triangle_args of = g->of;
        of.n = z == 0 ? g->first : left < g->of.n ? (int32_t)left : g->of.n;
        const void *l = triangle_at(kernel, device, (const char *)of.l + at * (of.rsl + of.csl) * e, of.n,
                                    of.rsl, of.csl, of.unit != 0);
        const void *f = gpb_fake_matrix_at(device, kernel->type,
                                           (CUdeviceptr)g->from + (CUdeviceptr)(at * g->rsf * e), of.n,
                                           of.cols, g->rsf, g->csf, kernel->symbol);
        void *b = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)of.b + (CUdeviceptr)(at * of.rsb * e),
                                     of.n, of.cols, of.rsb, of.csb, kernel->symbol);
        solvers[kernel->type].multiply(&of, l, f, g->rsf, g->csf, b);
    }
}

void gpb_fake_trsv(const gpb_fake_kernel *kernel, int device, const gpb_trsv_args *g)
{
    if (g->of.cols != 1)
        gpb_fake_die("BAD LAUNCH of %s: %lld columns", kernel->symbol, (long long)g->of.cols);
    const void *l = triangle_at(kernel, device, g->of.l, g->of.n, g->of.rsl, g->of.csl, g->of.unit != 0);
    void *b = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->of.b, g->of.n, 1, g->of.rsb,
                                 g->of.csb, kernel->symbol);
    arrive(kernel, device, g->arrivals, g->arrived, GPB_TRSV_BLOCKS(g->of.n, bytes_of(kernel)));
    solvers[kernel->type].trsv(&g->of, l, b);
}

/* Where element (0, 0) of member l is. */
static CUdeviceptr corner(const gpb_fake_kernel *kernel, CUdeviceptr base, int64_t elements)
{
    return base + (CUdeviceptr)(elements * bytes_of(kernel));
}

void gpb_fake_systems(const gpb_fake_kernel *kernel, int device, const gpb_systems_args *g)
{
    if (kernel->role == GPB_FAKE_small_systems && g->n > GPB_SMALL_SYSTEM)
        gpb_fake_die("BAD LAUNCH of %s: n=%d", kernel->symbol, g->n);
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    void *work = malloc((size_t)g->n * (size_t)bytes_of(kernel));
    if (!work)
        gpb_fake_die("%s: no memory", kernel->symbol);
    for (int64_t m = 0; m < g->batch; m++) {
        const gpb_gemm_item *item = items ? &items[m] : NULL;
        const CUdeviceptr l = (CUdeviceptr)(item ? g->right ? item->b : item->a : g->l),
                          b = (CUdeviceptr)(item ? g->right ? item->a : item->b : g->b),
                          x = (CUdeviceptr)(item ? item->c : g->x);
        const CUdeviceptr at_l = corner(kernel, l, g->first_l + (item ? 0 : m * g->stride_l)),
                          at_b = corner(kernel, b, g->first_b + (item ? 0 : m * g->stride_b)),
                          at_x = corner(kernel, x, g->first_x + (item ? 0 : m * g->stride_x));
        solvers[kernel->type].system(
            g, triangle_at(kernel, device, (const void *)at_l, g->n, g->rsl, g->csl, g->unit != 0),
            gpb_fake_matrix_at(device, kernel->type, at_b, g->n, g->cols, g->rsb, g->csb, kernel->symbol),
            gpb_fake_matrix_at(device, kernel->type, at_x, g->n, g->cols, g->rsx, g->csx, kernel->symbol),
            work);
    }
    free(work);
}

/* source[i] = the row whose contents row i gets, after the moves of one panel: all at once. */
static void exchange(const gpb_fake_kernel *kernel, const gpb_swap_args *g, int32_t *source,
                     const gpb_row_move *moves, int width)
{
    int32_t taken[2 * WIDEST_MOVES];
    for (int x = 0; x < 2 * width; x++) {
        if (moves[x].to < 0 || moves[x].to >= g->rows || moves[x].from < 0 || moves[x].from >= g->rows)
            gpb_fake_die("BAD LAUNCH of %s: row %d to row %d of %lld", kernel->symbol, moves[x].from,
                         moves[x].to, (long long)g->rows);
        taken[x] = source[g->backwards ? moves[x].to : moves[x].from];
    }
    for (int x = 0; x < 2 * width; x++)
        source[g->backwards ? moves[x].from : moves[x].to] = taken[x];
    for (int x = 0; x < 2 * width; x++)
        if (source[g->backwards ? moves[x].from : moves[x].to] != taken[x])
            gpb_fake_die("BAD LAUNCH of %s: moves contradict each other", kernel->symbol);
}

static void find_sources(const gpb_fake_kernel *kernel, int device, const gpb_swap_args *g, int32_t *source)
{
    const gpb_row_move *moves = (const gpb_row_move *)ints_at(kernel, device, g->moves, 4 * (int64_t)g->first,
                                                              4 * (int64_t)g->last);
    const int32_t *width = ints_at(kernel, device, g->width, g->first, g->last);
    for (int64_t i = 0; i < g->rows; i++)
        source[i] = (int32_t)i;
    for (int32_t done = 0, all = g->last - g->first; done < all;) {
        const int32_t n = width[g->backwards ? g->last - done - 1 : g->first + done];
        if (n < 1 || n > all - done || n > WIDEST_MOVES)
            gpb_fake_die("BAD LAUNCH of %s: a panel of %d columns, %d columns before the end", kernel->symbol,
                         n, all - done);
        const int64_t begins = g->backwards ? g->last - done - n : g->first + done;
        exchange(kernel, g, source, moves + 2 * begins, n);
        done += n;
    }
}

/* Moves `count` rows of every column, in increasing order. The rows of `moved` are those of `source`, too. */
static void move_rows(const gpb_fake_kernel *kernel, int device, const gpb_swap_args *g,
                      const int32_t *source, const int32_t *moved, int64_t count)
{
    const int64_t low = moved[0], high = moved[count - 1];
    const size_t bytes = gpb_type_bytes(kernel->type);
    char *a = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a + (CUdeviceptr)low * bytes,
                                 high - low + 1, g->cols, 1, g->lda, kernel->symbol);
    char *old = malloc((size_t)count * bytes);
    if (!old)
        gpb_fake_die("%s: no memory", kernel->symbol);
    for (int64_t j = 0; j < g->cols; j++) {
        char *column = a + (j * g->lda - low) * (int64_t)bytes;
        for (int64_t i = 0; i < count; i++)
            memcpy(old + (size_t)i * bytes, column + (size_t)source[moved[i]] * bytes, bytes);
        for (int64_t i = 0; i < count; i++)
            memcpy(column + (size_t)moved[i] * bytes, old + (size_t)i * bytes, bytes);
    }
    free(old);
}

void gpb_fake_swap(const gpb_fake_kernel *kernel, int device, const gpb_swap_args *g)
{
    if (g->first < 0 || g->last - g->first > GPB_SWAP_MOST || g->lda < g->rows || g->rows > INT32_MAX)
        gpb_fake_die("BAD LAUNCH of %s: columns %d to %d, %lld rows, lda %lld", kernel->symbol, g->first,
                     g->last, (long long)g->rows, (long long)g->lda);
    int32_t *source = malloc(2 * (size_t)g->rows * sizeof *source), *moved = source + g->rows;
    int64_t count = 0;
    if (!source)
        gpb_fake_die("%s: no memory", kernel->symbol);
    find_sources(kernel, device, g, source);
    for (int64_t i = 0; i < g->rows; i++)
        if (source[i] != i)
            moved[count++] = (int32_t)i;
    if (count)
        move_rows(kernel, device, g, source, moved, count);
    free(source);
}

void gpb_fake_identity(const gpb_fake_kernel *kernel, int device, const gpb_identity_args *g)
{
    if (g->lda < g->rows)
        gpb_fake_die("BAD LAUNCH of %s: %lld rows, lda %lld", kernel->symbol, (long long)g->rows,
                     (long long)g->lda);
    const size_t bytes = gpb_type_bytes(kernel->type);
    char *a = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a, g->rows, g->cols, 1, g->lda,
                                 kernel->symbol);
    const gpb_element one = gpb_element_of(kernel->type, 1), zero = gpb_element_of(kernel->type, 0);
    for (int64_t j = 0; j < g->cols; j++)
        for (int64_t i = 0; i < g->rows; i++)
            memcpy(a + (size_t)(i + j * g->lda) * bytes, i == j + g->below ? &one : &zero, bytes);
}

void gpb_fake_digest(const gpb_fake_kernel *kernel, int device, const gpb_digest_args *g)
{
    const int64_t bytes = bytes_of(kernel), all = gpb_digest_blocks(g->rows, bytes) * g->cols;
    const int64_t parts = (all + g->each - 1) / g->each;
    if (g->lda < g->rows || (g->uplo != 'G' && g->rows != g->cols))
        gpb_fake_die("BAD LAUNCH of %s: %lldx%lld, lda %lld, uplo %c", kernel->symbol, (long long)g->rows,
                     (long long)g->cols, (long long)g->lda, g->uplo);
    const uint32_t *a = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a, g->rows, g->cols, 1,
                                           g->lda, kernel->symbol);
    const gpb_digest_key *key = numbers_at(kernel, device, g->key, sizeof(uint64_t), 0, sizeof *key);
    uint64_t *to = numbers_at(kernel, device, g->polynomials, sizeof *to, 0,
                              parts * GPB_DIGEST_PASSES * (int64_t)sizeof *to);
    for (int64_t part = 0; part < parts; part++)
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
            const int64_t first = part * g->each, last = first + g->each < all ? first + g->each : all;
            *to++ = gpb_digest_by_words(key, pass, a, bytes / 4, g->rows, g->lda, g->uplo, first, last);
        }
}

static gpb_element conjugate_of(enum gpb_type type, gpb_element x)
{
    if (type == GPB_TYPE_c) x.c = __builtin_complex(__real__ x.c, -__imag__ x.c);
    if (type == GPB_TYPE_z) x.z = __builtin_complex(__real__ x.z, -__imag__ x.z);
    return x;
}

/* Both are whole matrices, but of the first the other triangle is not read. */
void gpb_fake_mirror(const gpb_fake_kernel *kernel, int device, const gpb_mirror_args *g)
{
    const size_t e = gpb_type_bytes(kernel->type);
    if (g->lda < g->n || g->ldto < g->n || g->first < 1 || g->first > g->n)
        gpb_fake_die("BAD LAUNCH of %s: order %lld, %lld of it, ld %lld and %lld", kernel->symbol,
                     (long long)g->n, (long long)g->first, (long long)g->lda, (long long)g->ldto);
    const char *from = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->a, g->n, g->n, 1, g->lda,
                                          kernel->symbol);
    char *to = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->to, g->n, g->n, 1, g->ldto,
                                  kernel->symbol);
    const int64_t rows = g->lower ? g->n : g->first, cols = g->lower ? g->first : g->n;
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = g->lower ? j : 0; i < rows && (g->lower || i <= j); i++) {
            gpb_element here;
            memcpy(&here, from + (size_t)(i + j * g->lda) * e, e);
            if (i == j && g->hermitian) gpb_type_make_real(kernel->type, &here);
            const gpb_element there = g->hermitian ? conjugate_of(kernel->type, here) : here;
            memcpy(to + (size_t)(i + j * g->ldto) * e, &here, e);
            memcpy(to + (size_t)(j + i * g->ldto) * e, &there, e);
        }
}

void gpb_fake_trapezoid(const gpb_fake_kernel *kernel, int device, const gpb_trapezoid_args *g)
{
    const size_t e = gpb_type_bytes(kernel->type);
    if (g->ldfrom < g->rows || g->ldto < g->rows)
        gpb_fake_die("BAD LAUNCH of %s: %lld rows, ld %lld and %lld", kernel->symbol, (long long)g->rows,
                     (long long)g->ldfrom, (long long)g->ldto);
    const char *from = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->from, g->rows, g->cols, 1,
                                          g->ldfrom, kernel->symbol);
    char *to = gpb_fake_matrix_at(device, kernel->type, (CUdeviceptr)g->to, g->rows, g->cols, 1, g->ldto,
                                  kernel->symbol);
    const char *columns = NULL;
    if (g->columns)
        columns = gpb_fake_matrix_at(device, GPB_TYPE_s, (CUdeviceptr)g->columns, g->cols, 1, 1, g->cols,
                                     kernel->symbol);
    for (int64_t j = 0; j < g->cols; j++) {
        int32_t of = (int32_t)j;
        if (columns) memcpy(&of, columns + 4 * j, sizeof of);
        if (of < 0 || of >= g->cols)
            gpb_fake_die("BAD LAUNCH of %s: column %d of %lld", kernel->symbol, of, (long long)g->cols);
        for (int64_t i = 0; i < g->rows; i++)
            if (g->lower ? i >= j + g->diagonal : i <= j + g->diagonal)
                memcpy(to + (size_t)(i + j * g->ldto) * e, from + (size_t)(i + of * g->ldfrom) * e, e);
    }
}

/* ---- refinement */

static double _Complex number_at(enum gpb_type type, const char *a, int64_t index)
{
    gpb_element x;
    memcpy(&x, a + (size_t)index * gpb_type_bytes(type), gpb_type_bytes(type));
    return type == GPB_TYPE_s ? x.s : type == GPB_TYPE_d ? x.d : type == GPB_TYPE_c ? x.c : x.z;
}

static void put_number(enum gpb_type type, char *a, int64_t index, double _Complex x)
{
    const gpb_element element = gpb_element_of(type, x);
    memcpy(a + (size_t)index * gpb_type_bytes(type), &element, gpb_type_bytes(type));
}

static void *matrix_at(const gpb_fake_kernel *kernel, int device, enum gpb_type type, const void *a,
                       int64_t rows, int64_t cols, int64_t ld)
{
    if (ld < rows)
        gpb_fake_die("BAD LAUNCH of %s: %lld rows, ld %lld", kernel->symbol, (long long)rows, (long long)ld);
    return gpb_fake_matrix_at(device, type, (CUdeviceptr)a, rows, cols, 1, ld, kernel->symbol);
}

static bool overflows(double x) { return x < -FLT_MAX || x > FLT_MAX; }

void gpb_fake_narrow(const gpb_fake_kernel *kernel, int device, const gpb_narrow_args *g)
{
    const enum gpb_type narrow = gpb_type_narrow(kernel->type);
    const char *from = matrix_at(kernel, device, kernel->type, g->from, g->rows, g->cols, g->ldfrom);
    char *to = matrix_at(kernel, device, narrow, g->to, g->rows, g->cols, g->ldto);
    int32_t *overflow = ints_at(kernel, device, g->overflow, 0, 1);
    for (int64_t j = 0; j < g->cols; j++)
        for (int64_t i = 0; i < g->rows; i++) {
            const int64_t below = i - j - g->shift;
            if ((g->uplo == 'L' && below < 0) || (g->uplo == 'U' && below > 0))
                continue;
            double _Complex x = number_at(kernel->type, from, i + j * g->ldfrom);
            if (g->uplo != 'G' && below == 0)
                x = __real__ x;
            if (overflows(__real__ x) || overflows(__imag__ x))
                *overflow = 1;
            else
                put_number(narrow, to, i + j * g->ldto, x);
        }
}

void gpb_fake_correct(const gpb_fake_kernel *kernel, int device, const gpb_correct_args *g)
{
    const enum gpb_type narrow = gpb_type_narrow(kernel->type);
    const char *c = matrix_at(kernel, device, narrow, g->c, g->rows, g->cols, g->ldc);
    const char *b = matrix_at(kernel, device, kernel->type, g->b, g->rows, g->cols, g->ldb);
    char *x = matrix_at(kernel, device, kernel->type, g->x, g->rows, g->cols, g->ldx);
    char *r = matrix_at(kernel, device, kernel->type, g->r, g->rows, g->cols, g->ldr);
    for (int64_t j = 0; j < g->cols; j++)
        for (int64_t i = 0; i < g->rows; i++) {
            double _Complex sum = number_at(narrow, c, i + j * g->ldc);
            if (g->adds)
                sum += number_at(kernel->type, x, i + j * g->ldx);
            put_number(kernel->type, x, i + j * g->ldx, sum);
            put_number(kernel->type, r, i + j * g->ldr, number_at(kernel->type, b, i + j * g->ldb));
        }
}

void gpb_fake_norm(const gpb_fake_kernel *kernel, int device, const gpb_norm_args *g)
{
    const char *a = matrix_at(kernel, device, kernel->type, g->a, g->rows, g->cols, g->lda);
    uint64_t *norm = numbers_at(kernel, device, g->norm, sizeof *norm, 0, sizeof *norm);
    for (int64_t i = 0; i < g->rows; i++) {
        double sum = 0;
        uint64_t bits;
        for (int64_t j = 0; j < g->cols; j++) {
            const double _Complex x = number_at(kernel->type, a, i + j * g->lda);
            sum += hypot(__real__ x, __imag__ x);
        }
        memcpy(&bits, &sum, sizeof bits);
        bits &= INT64_MAX;
        *norm = bits > *norm ? bits : *norm;
    }
}

/* Of a column; NaN if one is. */
static double largest(enum gpb_type type, const char *a, int64_t rows, int64_t first)
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double _Complex x = number_at(type, a, first + i);
        const double size = fabs(__real__ x) + fabs(__imag__ x);
        most = size > most || isnan(size) ? size : most;
    }
    return most;
}

void gpb_fake_judge(const gpb_fake_kernel *kernel, int device, const gpb_judge_args *g)
{
    const char *x = matrix_at(kernel, device, kernel->type, g->x, g->rows, g->cols, g->ldx);
    const char *r = matrix_at(kernel, device, kernel->type, g->r, g->rows, g->cols, g->ldr);
    const double *norm = numbers_at(kernel, device, g->norm, sizeof *norm, 0, sizeof *norm);
    int32_t *worse = ints_at(kernel, device, g->worse, 0, 1);
    for (int64_t j = 0; j < g->cols; j++) {
        const double limit = *norm * g->eps * sqrt((double)g->rows);
        const double of_r = largest(kernel->type, r, g->rows, j * g->ldr),
                     most = largest(kernel->type, x, g->rows, j * g->ldx) * limit;
        if (isfinite(*norm) ? !(of_r <= most) : of_r > most) *worse = g->round;
    }
}
