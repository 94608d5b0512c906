/* SPDX-License-Identifier: MIT */
/* Finishes a call on the host, through the host's own sgemm_, in the rectangles that are left. */
#include "src/run/repair.h"

#include <stdlib.h>

#include "dispatch/numbers.h"
#include "kernels/split.h"
#include "src/host/gemm_abi.h"
#include "src/gpu/dma.h"
#include "src/gpu/place.h"
#include "src/gpu/host_memory.h"
#include "src/host/next.h"

/* One member's matrices, in memory that the host can read, and the part of k and beta that are still to be applied. */
typedef struct member {
    const gpb_call *call;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc, p, k;
    float beta;
} member;

/* C(i.., j..) of one member, by a host of the caller's own kind. The integers are 64 bits wide in memory for any: of two libraries in a
   process a name may be the other one's, and one of 32 bits reads the lower halves, which hold a 32-bit caller's sizes. */
static void rectangle(const member *x, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    const gpb_call *g = x->call;
    if (rows <= 0 || cols <= 0) return;
    float *c = x->c + i + j * x->ldc, alpha = x->k ? (float)g->alpha : 0;      /* k = 0: OpenBLAS makes NaN of alpha = NaN */
    const float *a = c, *b = c;      /* any address: with k = 0 they are not read */
    if (x->k) {
        a = x->a + (g->transa == 'N' ? i + x->p * x->lda : i * x->lda + x->p);
        b = x->b + (g->transb == 'N' ? j * x->ldb + x->p : j + x->p * x->ldb);
    }
    void (*gemm)(GPB_F77_GEMM_PARAMS(float, int64_t), size_t, size_t);
    *(void **)&gemm = gpb_next(g->width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_);
    gemm(&g->transa, &g->transb, &rows, &cols, &x->k, &alpha, a, &x->lda, b, &x->ldb, &x->beta, c, &x->ldc, 1, 1);
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

/* The part of k that is left when the move's panel is in C too: after it, or (in every other block) before. */
static void leave(member *x, const gpb_move *move)
{
    const bool backwards = move->number % 2;
    x->p = backwards ? 0 : move->p + move->k1;
    x->k = backwards ? move->p : x->call->k - x->p;
    x->beta = 1;
}

/* The operand itself, or (if it is on a GPU) a tight copy of it in *owned, with *ld to match. */
static void *here(enum gpb_place place, void *at, int64_t rows, int64_t cols, int64_t *ld, bool fetch, void **owned)
{
    *owned = NULL;
    if (gpb_place_on_host(place) || (gpb_place_on_host(gpb_gpu_place(at)) && gpb_host_readable(at))) return at;
    gpb_panel panel = { .rows = rows, .cols = cols, .ld = *ld, .element = sizeof(float), .uplo = 'G' };
    *owned = malloc((size_t)rows * (size_t)cols * sizeof(float));
    if (!*owned || (fetch && gpb_gpu_bounce(&panel, at, *owned, true))) return NULL;
    *ld = rows;
    return *owned;
}

/* One member of a tile. left: of the tile that the run broke off in, NULL for others. */
typedef struct left {
    const gpb_progress *done;
    gpb_move last;               /* the last of its panels of k that is in C, if done->steps > 0 ... */
    gpb_move next;               /* ... and the one after it */
} left;

static bool finish_member(const gpb_call *call, const gpb_facts *facts, const gpb_tile *t, int64_t l, const left *begun)
{
    const bool reads = gpb_call_multiplies(call);
    member x = { .call = call, .lda = call->lda, .ldb = call->ldb, .ldc = call->ldc, .k = reads ? call->k : 0, .beta = (float)call->beta };
    void *at_c = gpb_member(call->c, (const void *const *)call->c_array, call->stride_c, t->member + l, sizeof(float));
    void *owned[3] = { NULL };
    if (begun && begun->done->steps) leave(&x, &begun->last);      /* these panels, and beta, are in C already */
    if (reads) {
        x.a = here(facts->a, gpb_member(call->a, call->a_array, call->stride_a, t->member + l, sizeof(float)), gpb_call_rows_a(call),
                   gpb_call_cols_a(call), &x.lda, true, &owned[0]);
        x.b = here(facts->b, gpb_member(call->b, call->b_array, call->stride_b, t->member + l, sizeof(float)), gpb_call_rows_b(call),
                   gpb_call_cols_b(call), &x.ldb, true, &owned[1]);
    }
    x.c = here(facts->c, at_c, call->m, call->n, &x.ldc, true, &owned[2]);
    bool ok = x.c && (!reads || (x.a && x.b));
    if (ok && begun && begun->done->torn) {
        const member rest = x;
        x.p = begun->next.p, x.k = begun->next.k1;
        blocks(&x, t, begun->done->marks + l * (gpb_split_guards(t->rows) + gpb_split_guards(t->cols)));
        x = rest;
        leave(&x, &begun->next);
    }
    if (ok) columns(&x, t, begun && l == begun->done->members ? begun->done->cols : 0);
    /* Of a triangle the other one may be another thread's by now. */
    gpb_panel home = { .rows = call->m, .cols = call->n, .ld = call->ldc, .element = sizeof(float), .uplo = call->uplo };
    if (ok && owned[2]) ok = gpb_gpu_bounce(&home, at_c, owned[2], false) == CUDA_SUCCESS;
    for (int i = 0; i < 3; i++) free(owned[i]);
    return ok;
}

/* The tiles from the first that is not done on, in the order of the run. */
bool gpb_host_finish(const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, const gpb_progress *progress)
{
    /* A plan that came to nothing has no tiles: then all of C is one. */
    gpb_plan whole = *plan;
    bool ok = !progress->torn || progress->marks;
    if (!whole.gpu) whole.mc = whole.sm = call->m, whole.nc = whole.sn = call->n, whole.kc = call->k, whole.group = call->batch;
    gpb_walk walk = gpb_schedule_begin(call, &whole);
    int64_t number = 0, step = 0;
    left begun = { .done = progress };
    for (const gpb_move *move; ok && (move = gpb_schedule_next(&walk));) {
        if (move->tile.rows == 0) continue;
        const bool first = number == progress->tiles;
        step = move->first ? 0 : step + 1;
        if (first && step < progress->steps) begun.last = *move;
        if (first && step == progress->steps) begun.next = *move;
        if (!move->last) continue;
        for (int64_t l = first ? progress->members : 0; number >= progress->tiles && l < move->tile.members && ok; l++)
            ok = finish_member(call, facts, &move->tile, l, first ? &begun : NULL);
        number++;
    }
    return ok;
}
