/* SPDX-License-Identifier: MIT */
/* Finishes a call on the host, through the host's own sgemm_, in the rectangles that are left. */
#include "src/host_finish.h"

#include <stdlib.h>

#include "kernels/split.h"
#include "src/gemm_abi.h"
#include "src/gpu_copy.h"
#include "src/next.h"

/* One member's matrices, in memory that the host can read, and the part of k and beta that are still to be applied. */
typedef struct member {
    const gpb_call *call;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc, p, k;
    float beta;
} member;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* C(i.., j..) of one member, by the host. Integers as wide as the caller's: they hold, and a host of the caller's own kind serves. */
static void rectangle(const member *x, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    const gpb_call *g = x->call;
    if (rows <= 0 || cols <= 0) return;
    float *c = x->c + i + j * x->ldc, alpha = (float)g->alpha;
    const float *a = c, *b = c;      /* any address: with k = 0 they are not read */
    if (x->k) {
        a = x->a + (g->transa == 'N' ? i + x->p * x->lda : i * x->lda + x->p);
        b = x->b + (g->transb == 'N' ? j * x->ldb + x->p : j + x->p * x->ldb);
    }
    if (g->width == 64) {
        void (*gemm)(GPB_F77_GEMM_PARAMS(float, int64_t), size_t, size_t);
        *(void **)&gemm = gpb_next(GPB_SYMBOL_sgemm_64_);
        gemm(&g->transa, &g->transb, &rows, &cols, &x->k, &alpha, a, &x->lda, b, &x->ldb, &x->beta, c, &x->ldc, 1, 1);
    } else {
        void (*gemm)(GPB_F77_GEMM_PARAMS(float, int32_t), size_t, size_t);
        const int32_t m = (int32_t)rows, n = (int32_t)cols, k = (int32_t)x->k;
        const int32_t lda = (int32_t)x->lda, ldb = (int32_t)x->ldb, ldc = (int32_t)x->ldc;
        *(void **)&gemm = gpb_next(GPB_SYMBOL_sgemm_);
        gemm(&g->transa, &g->transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &x->beta, c, &ldc, 1, 1);
    }
}

/* The columns of a tile from `from` on; of a triangle, only its part of each column. */
static void columns(const member *x, const gpb_tile *t, int64_t from)
{
    if (x->call->uplo == 'G') {
        rectangle(x, t->i, t->rows, t->j + from, t->cols - from);
        return;
    }
    for (int64_t j = t->j + from; j < t->j + t->cols; j++) {
        int64_t first = t->i, last = t->i + t->rows;
        if (x->call->uplo == 'L' && first < j) first = j;
        if (x->call->uplo == 'U' && last > j + 1) last = j + 1;
        rectangle(x, first, last - first, j, 1);
    }
}

/* The panel of which C has all but the marked blocks. */
static void blocks(const member *x, const gpb_tile *t, const bool *marks)
{
    const int64_t rows = gpb_split_guards(t->rows), cols = gpb_split_guards(t->cols);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            if (marks[i] || marks[rows + j])
                rectangle(x, t->i + i * GPB_GUARD, least(GPB_GUARD, t->rows - i * GPB_GUARD), t->j + j * GPB_GUARD,
                          least(GPB_GUARD, t->cols - j * GPB_GUARD));
}

/* The part of k that is left after so many panels of a tile: after them, or (every other tile) before. */
static void leave(member *x, const gpb_plan *plan, int64_t number, int64_t steps)
{
    int64_t last = gpb_gpu_panel(x->call, plan, number, steps - 1);
    x->p = number % 2 ? 0 : least(last + plan->kc, x->call->k);
    x->k = number % 2 ? last : x->call->k - x->p;
    x->beta = 1;
}

/* The operand itself, or (if it is on a GPU) a tight copy of it in *owned, with *ld to match. */
static void *here(enum gpb_place place, void *at, int64_t rows, int64_t cols, int64_t *ld, bool fetch, void **owned)
{
    *owned = NULL;
    if (gpb_place_on_host(place) || gpb_place_on_host(gpb_gpu_place(at))) return at;
    gpb_panel panel = { .rows = rows, .cols = cols, .ld = *ld, .element = sizeof(float), .uplo = 'G' };
    *owned = malloc((size_t)rows * (size_t)cols * sizeof(float));
    if (!*owned || (fetch && gpb_gpu_bounce(&panel, at, *owned, true))) return NULL;
    *ld = rows;
    return *owned;
}

bool gpb_host_finish(const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, const gpb_progress *progress)
{
    /* A plan that came to nothing has no tiles: then all of C is one. */
    gpb_plan whole = *plan;
    const gpb_progress done = *progress;
    const bool reads = gpb_call_multiplies(call);
    bool ok = !done.torn || done.marks;
    if (!whole.gpu) whole.mc = call->m, whole.nc = call->n, whole.kc = call->k, whole.group = call->batch;
    for (int64_t number = done.tiles; number < gpb_gpu_tiles(call, &whole) && ok; number++) {
        gpb_tile t = gpb_gpu_tile(call, &whole, number);
        bool first = number == done.tiles;
        if (gpb_gpu_tile_idle(call, &t)) continue;
        for (int64_t l = first ? done.members : 0; l < t.members && ok; l++) {
            member x = { .call = call, .lda = call->lda, .ldb = call->ldb, .ldc = call->ldc, .k = reads ? call->k : 0,
                         .beta = (float)call->beta };
            if (first && done.steps) leave(&x, &whole, number, done.steps);      /* these panels, and beta, are in C already */
            void *at_c = gpb_member(call->c, (const void *const *)call->c_array, call->stride_c, t.member + l, sizeof(float));
            void *owned[3] = { NULL };
            if (reads) {
                x.a = here(facts->a, gpb_member(call->a, call->a_array, call->stride_a, t.member + l, sizeof(float)),
                           gpb_call_rows_a(call), gpb_call_cols_a(call), &x.lda, true, &owned[0]);
                x.b = here(facts->b, gpb_member(call->b, call->b_array, call->stride_b, t.member + l, sizeof(float)),
                           gpb_call_rows_b(call), gpb_call_cols_b(call), &x.ldb, true, &owned[1]);
            }
            x.c = here(facts->c, at_c, call->m, call->n, &x.ldc, true, &owned[2]);
            ok = x.c && (!reads || (x.a && x.b));
            if (ok && first && done.torn) {
                const member rest = x;
                x.p = gpb_gpu_panel(call, &whole, number, done.steps), x.k = least(whole.kc, call->k - x.p);
                blocks(&x, &t, done.marks + l * (gpb_split_guards(t.rows) + gpb_split_guards(t.cols)));
                x = rest;
                leave(&x, &whole, number, done.steps + 1);
            }
            if (ok) columns(&x, &t, first && l == done.members ? done.cols : 0);
            gpb_panel home = { .rows = call->m, .cols = call->n, .ld = call->ldc, .element = sizeof(float), .uplo = 'G' };
            if (ok && owned[2]) ok = gpb_gpu_bounce(&home, at_c, owned[2], false) == CUDA_SUCCESS;
            for (int i = 0; i < 3; i++) free(owned[i]);
        }
    }
    return ok;
}
