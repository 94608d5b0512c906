/* SPDX-License-Identifier: MIT */
/* Finishes a call on the host: computes the rectangles that are left by the host's own GEMM of that type. */
#include "src/run/repair.h"

#include <stdlib.h>

#include "dispatch/numbers.h"
#include "dispatch/schedule.h"
#include "kernels/sliced.h"
#include "src/copy/copy2d.h"
#include "src/copy/scale.h"
#include "src/host/level3.h"
#include "src/gpu/dma.h"
#include "src/gpu/place.h"
#include "src/gpu/host_memory.h"

/* One member's matrices, in memory that the host can read, and the part of k and the beta that are still to
   be applied. */
typedef struct member {
    const gpb_call *call;
    char *at[GPB_OPERANDS];
    int64_t ld[GPB_OPERANDS], p, k;
    gpb_scalar beta;
} member;

/* Element (row, col) of an operand as it is stored. */
static char *element(const member *x, enum gpb_operand which, int64_t row, int64_t col)
{
    return x->at[which] + (size_t)(row + col * x->ld[which]) * gpb_call_element(x->call);
}

/* Part of an operand, as it is stored. */
typedef struct piece {
    const char *at;
    int64_t ld;
} piece;

/* The operand's part for that rectangle. If nothing is multiplied it is not read, and any address will do. */
static piece piece_of(const member *x, enum gpb_operand which, const gpb_region *of)
{
    const int64_t at = of->at[which], ld = x->ld[which];
    if (!x->k) return (piece){ x->at[GPB_C], x->ld[GPB_C] };
    return gpb_call_k_down(x->call, which) ? (piece){ element(x, which, x->p, at), ld }
                                           : (piece){ element(x, which, at, x->p), ld };
}

/* C = alpha A B + beta C there, by the host's GEMM. */
static void product_of(const member *x, const gpb_region *to, piece a, piece b)
{
    gpb_call part = *x->call;
    part.m = to->rows;
    part.n = to->cols;
    part.k = x->k;
    part.beta = x->beta;
    const piece pieces[GPB_OPERANDS] = { a, b, { element(x, GPB_C, to->i, to->j), x->ld[GPB_C] } };
    for (int y = 0; y < GPB_OPERANDS; y++) {
        part.x[y].base = pieces[y].at;
        part.x[y].ld = pieces[y].ld;
    }
    gpb_host_gemm(&part);
}

/* The same part of an operand of which one triangle is stored, as all of it. */
static piece mirror(const member *x, enum gpb_operand which, const gpb_region *of, char *room)
{
    const gpb_matrix *stored = &x->call->x[which];
    const bool is_a = which == GPB_A;
    const int64_t row = is_a ? of->i : x->p, col = is_a ? x->p : of->j, rows = is_a ? of->rows : x->k;
    gpb_copy2d(&(gpb_copy2d_job){ .from = element(x, which, row, col), .to = room, .rows = rows,
                                  .cols = is_a ? x->k : of->cols, .ld_from = x->ld[which], .ld_to = rows,
                                  .element = gpb_call_element(x->call), .uplo = stored->uplo, .row0 = row,
                                  .col0 = col, .target = GPB_STORE_CACHED, .mirrors = true,
                                  .hermitian = stored->structure == GPB_HERMITIAN, .type = x->call->type });
    return (piece){ room, rows };
}

/* The host's GEMM wants all of a matrix. So the operand is mirrored into memory of our own, as many rows of A
   (columns of B) at a time as there is room for; parts of one, if memory is short. */
static void product_mirrored(const member *x, const gpb_region *to, enum gpb_operand which)
{
    enum { MOST = 8 << 20, LEAST = 4096 };
    const int64_t e = (int64_t)gpb_call_element(x->call), end = to->at[which] + to->size[which];
    int64_t bytes = min(MOST, e * x->k * to->size[which]);
    char least[LEAST], *room = malloc((size_t)bytes);
    while (!room && bytes > LEAST) room = malloc((size_t)(bytes /= 2));
    char *const owned = room;
    if (!room || bytes < LEAST) {
        room = least;
        bytes = LEAST;
    }
    const int64_t depth = min(x->k, bytes / e), count = bytes / e / depth;
    gpb_region part = *to;
    for (; part.at[which] < end; part.at[which] += count)
        for (int64_t p = 0; p < x->k; p += depth) {
            member deep = *x;
            deep.p += p;
            deep.k = min(depth, x->k - p);
            if (p) deep.beta = 1;
            part.size[which] = min(count, end - part.at[which]);
            const piece whole = mirror(&deep, which, &part, room);
            const piece other = piece_of(&deep, !which, &part);
            product_of(&deep, &part, which == GPB_A ? whole : other, which == GPB_A ? other : whole);
        }
    free(owned);
}

/* C(i.., j..) = alpha A B + beta C. */
static void product(const member *x, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    const gpb_region to = { .i = i, .j = j, .rows = rows, .cols = cols };
    if (x->k && gpb_call_mirrors(x->call, GPB_A)) product_mirrored(x, &to, GPB_A);
    else if (x->k && gpb_call_mirrors(x->call, GPB_B)) product_mirrored(x, &to, GPB_B);
    else product_of(x, &to, piece_of(x, GPB_A, &to), piece_of(x, GPB_B, &to));
}

/* Computes C(i.., j..) of one member. The host's GEMM multiplies a Hermitian C by a complex beta, and makes
   no diagonal real, so this is done here. */
static void rectangle(const member *x, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    member as = *x;
    if (rows <= 0 || cols <= 0) return;
    if (!gpb_call_hermitian(x->call)) {
        product(x, i, rows, j, cols);
        return;
    }
    for (int64_t col = j; col < j + cols; col++)
        gpb_scale_column(x->call, x->beta, element(x, GPB_C, i, col), (gpb_matrix_rows){ 0, rows }, col - i);
    as.beta = 1;
    product(&as, i, rows, j, cols);
    for (int64_t d = max(i, j); d < min(i + rows, j + cols); d++)
        gpb_type_make_real(x->call->type, element(x, GPB_C, d, d));
}

/* Computes what of C(i.., j..) belongs to C's triangle. A part that the diagonal crosses is halved until it
   is small, so that nearly all of a triangle is rectangles, at GEMM's speed. */
static void triangle(const member *x, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    enum { SMALL = 16 };
    if (rows <= 0 || cols <= 0) return;
    const char uplo = x->call->x[GPB_C].uplo;
    const gpb_matrix_rows left = gpb_matrix_rows_of(uplo, i, rows, j),
                          right = gpb_matrix_rows_of(uplo, i, rows, j + cols - 1);
    if (left.first == left.last && right.first == right.last) return;
    if (left.last - left.first == rows && right.last - right.first == rows) {
        rectangle(x, i, rows, j, cols);
    } else if (max(rows, cols) <= SMALL) {
        for (int64_t col = j; col < j + cols; col++) {
            const gpb_matrix_rows own = gpb_matrix_rows_of(uplo, i, rows, col);
            rectangle(x, i + own.first, own.last - own.first, col, 1);
        }
    } else if (rows > cols) {
        triangle(x, i, rows / 2, j, cols);
        triangle(x, i + rows / 2, rows - rows / 2, j, cols);
    } else {
        triangle(x, i, rows, j, cols / 2);
        triangle(x, i, rows, j + cols / 2, cols - cols / 2);
    }
}

static int64_t guard_rows(const gpb_call *call) { return GPB_GUARD_ROWS(gpb_type_is_complex(call->type)); }

/* Computes the flagged blocks, which are all that C lacks of the panel. */
static void blocks(const member *x, const gpb_region *t, const bool *flagged)
{
    const int64_t high = guard_rows(x->call), rows = ceil_div(t->rows, high);
    const int64_t cols = gpb_sliced_guards(t->cols);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            if (flagged[i] || flagged[rows + j])
                triangle(x, t->i + i * high, min(high, t->rows - i * high), t->j + j * GPB_GUARD,
                         min(GPB_GUARD, t->cols - j * GPB_GUARD));
}

/* Of a system, all but the first columns of X, which are in B's place. */
static void solve(const member *x, int64_t done)
{
    const enum gpb_operand a = gpb_call_triangle(x->call);
    const gpb_triangular t = gpb_triangular_of(x->call, x->at[a], x->ld[a], x->at[GPB_C], x->ld[GPB_C]);
    gpb_host_triangular_rest(&t, done);
}

/* Sets p and k to what is left once the move's panel is in C: the part of k after it or, in every other
   block, before it. */
static void leave(member *x, const gpb_move *move)
{
    const bool backwards = move->number % 2;
    x->p = backwards ? 0 : move->p + move->depth;
    x->k = backwards ? move->p : x->call->k - x->p;
    x->beta = 1;
}

/* Puts the operand's address and ld into *x: the caller's own, or if it is on a GPU those of a tight copy in
   *owned. */
static bool here(member *x, enum gpb_operand which, enum gpb_place place, int64_t l, void **owned)
{
    const gpb_call *g = x->call;
    void *at = gpb_call_member(g, which, l);
    x->at[which] = at;
    x->ld[which] = g->x[which].ld;
    if (gpb_place_on_host(place) || (gpb_place_on_host(gpb_place_of(at)) && gpb_host_readable(at)))
        return true;
    const gpb_dma_shape panel = { .rows = gpb_call_rows(g, which), .cols = gpb_call_cols(g, which),
                                  .ld = g->x[which].ld,
                                  .element = gpb_call_element(g),
                                  .uplo = gpb_call_mirrors(g, which) ? g->x[which].uplo : 'G' };
    x->at[which] = *owned = malloc((size_t)panel.rows * (size_t)panel.cols * panel.element);
    x->ld[which] = panel.rows;
    return *owned && gpb_dma_copy_and_wait(&panel, at, *owned, true) == CUDA_SUCCESS;
}

/* The same part of k of the second product of SYR2K, which is added to the first's. */
static member exchanged(const member *x, const gpb_call *second)
{
    member y = *x;
    y.call = second;
    y.beta = second->beta;
    for (int i = 0; i < GPB_C; i++) {
        y.at[i] = x->at[!i];
        y.ld[i] = x->ld[!i];
    }
    return y;
}

/* The state of the tile in which the run broke off. */
typedef struct left {
    const gpb_progress *done;
    gpb_move last;               /* the last panel of k that is in C, if done->steps > 0 */
    gpb_move next;               /* the panel after it */
} left;

static bool finish_member(const gpb_call *call, const gpb_facts *facts, const gpb_region *t, int64_t l,
                          const left *begun)
{
    member x = { .call = call, .k = gpb_call_depth(call), .beta = call->beta };
    const enum gpb_place places[] = { facts->where[GPB_A].place, facts->where[GPB_B].place,
                                      facts->where[GPB_C].place };
    void *owned[GPB_OPERANDS] = { NULL };
    bool ok = true;
    if (begun && begun->done->steps) leave(&x, &begun->last);  /* these panels and beta are in C already */
    for (int i = gpb_call_multiplies(call) ? GPB_A : GPB_C; i < GPB_OPERANDS && ok; i++)
        ok = here(&x, i, places[i], t->member + l, &owned[i]);
    if (ok && begun && begun->done->blocks_missing) {
        const member rest = x;
        x.p = begun->next.p;
        x.k = begun->next.depth;
        const int64_t guards = ceil_div(t->rows, guard_rows(call)) + gpb_sliced_guards(t->cols);
        blocks(&x, t, begun->done->flagged_blocks + l * guards);
        x = rest;
        leave(&x, &begun->next);
    }
    const int64_t home = begun && l == begun->done->members ? begun->done->cols : 0;
    if (ok && gpb_call_solves(call) && gpb_call_multiplies(call)) solve(&x, home);
    else if (ok) triangle(&x, t->i, t->rows, t->j + home, t->cols - home);
    if (ok && x.k && gpb_call_products(call) == 2) {
        const gpb_call second = gpb_call_second(call);
        const member y = exchanged(&x, &second);
        triangle(&y, t->i, t->rows, t->j + home, t->cols - home);
    }
    /* Of a triangle only its own part goes back, because the other may be another thread's by now. */
    const gpb_matrix *c = &call->x[GPB_C];
    const gpb_dma_shape back = { .rows = call->m, .cols = call->n, .ld = c->ld,
                                 .element = gpb_call_element(call), .uplo = c->uplo };
    if (ok && owned[GPB_C])
        ok = gpb_dma_copy_and_wait(&back, gpb_call_member(call, GPB_C, t->member + l), owned[GPB_C], false)
             == CUDA_SUCCESS;
    for (int i = 0; i < GPB_OPERANDS; i++) free(owned[i]);
    return ok;
}

/* Goes through the tiles in the order of the run, from the first that is not done. */
bool gpb_repair(const gpb_job *job)
{
    const gpb_call *call = job->call;
    const gpb_progress *progress = &job->progress;
    /* A plan for the host has no tiles, so all of C is one. */
    gpb_plan whole = job->plan;
    bool ok = !progress->blocks_missing || progress->flagged_blocks;
    if (!whole.gpu) {
        whole.panel[GPB_A].extent = whole.panel[GPB_A].strip = call->m;
        whole.panel[GPB_B].extent = whole.panel[GPB_B].strip = call->n;
        whole.kc = call->k;
        whole.group = call->batch;
    }
    gpb_schedule_cursor cursor = gpb_schedule_begin(call, &whole);
    int64_t number = 0, step = 0;
    left begun = { .done = progress };
    for (const gpb_move *move; ok && (move = gpb_schedule_next(&cursor));) {
        if (move->tile.rows == 0) continue;
        const bool first = number == progress->tiles;
        step = move->first ? 0 : step + 1;
        if (first && step < progress->steps) begun.last = *move;
        if (first && step == progress->steps) begun.next = *move;
        if (!move->last) continue;
        for (int64_t l = first ? progress->members : 0;
             number >= progress->tiles && l < move->tile.members && ok; l++)
            ok = finish_member(call, job->facts, &move->tile, l, first ? &begun : NULL);
        number++;
    }
    return ok;
}
