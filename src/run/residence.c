/* SPDX-License-Identifier: MIT */
#include "src/run/residence.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/dma.h"
#include "src/gpu/gpu.h"
#include "src/gpu/memory.h"

/* ---- the arena */

static CUdeviceptr carve(CUdeviceptr *arena, int64_t bytes)
{
    const CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)round_up(bytes, 256);
    return at;
}

/* Bytes of the products' workspace; 0: there is too little memory. It is the same whether factors are kept or
   come: the products' plans depend on it, and the same call must give the same bits. */
static int64_t workspace_of(const gpb_residence *r)
{
    const int64_t wanted = gpb_resident_workspace(r->work, r->lane->device->arch), least = wanted / 8;
    const int64_t left = r->lane->device->budget - gpb_resident_bytes(r->work);
    const int64_t workspace = round_up(min(wanted, left), 256) - 256;
    return workspace < least ? 0 : workspace;
}

static int64_t bytes_of_pivots(const gpb_residence *r)
{
    return round_up(8 + r->work->system.a.n * (4 + 2 * (int64_t)sizeof(gpb_row_move)), 256);
}

/* Bytes before factors that are to be kept: for as many right-hand sides as they have columns and a block
   beside them, or MANY, and for pivots; less where half of the device's memory does not suffice for all. */
static int64_t room_of(const gpb_residence *r, int64_t others)
{
    enum { MANY = 4096 };
    const gpb_factor *f = &r->work->system.a;
    if (!r->work->factors || r->work->given || !gpb_place_on_host(r->facts.where[GPB_A].place)) return 0;
    const int64_t cols = max(f->n + gpb_resident_inverse_block(r->work), MANY);
    const int64_t b = gpb_resident_ld(r->work) * cols * (int64_t)r->element;
    const int64_t all = round_up(b, 256) + bytes_of_pivots(r);
    return max(0, min(all, r->lane->device->budget / 2 - others) / 256 * 256);
}

/* B, R; the narrow A and X; words. */
static void carve_refined(gpb_residence *r, CUdeviceptr *arena)
{
    const int64_t bytes = r->ld * r->work->system.nrhs * (int64_t)r->element;
    CUdeviceptr at = *arena;
    r->given = carve(&at, 2 * bytes);
    r->residual = r->given + (CUdeviceptr)bytes;
    r->words = carve(&at, sizeof(gpb_refined_words));
    r->narrow = at;
    *arena += (CUdeviceptr)gpb_resident_refined_bytes(r->work);
}

/* Bytes for TRMM's result beside B as it came. Without them it goes by halves, in B's place. Whatever else
   the device holds does not count, because the same call must give the same bits: kept factors give way. */
static int64_t room_for_results(const gpb_residence *r, int64_t others)
{
    const gpb_system *s = &r->work->system;
    const bool stays = gpb_residence_can_stay(r->facts.where[GPB_B].place, s->b,
                                              s->ldb * (int64_t)r->element);
    const int64_t bytes = stays ? 0 : gpb_resident_results(r->work);
    return others + bytes <= r->lane->device->budget ? bytes : 0;
}

/* The products' workspace is the arena's beginning, where they look for it. */
const char *gpb_residence_provide(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    const int64_t order = gpb_factor_order(f), bytes = gpb_resident_bytes(r->work);
    const int64_t workspace = workspace_of(r), room = room_of(r, bytes + workspace);
    const int64_t results = room_for_results(r, bytes + workspace);
    if (!workspace) return "too little device memory";
    if (!gpb_memory_arena(r->lane, bytes + workspace + room + results) || !gpb_memory_counters(r->lane))
        return gpb_gpu_started() ? "too little device memory" : gpb_gpu_why();
    CUdeviceptr at = r->lane->arena.at + (CUdeviceptr)(workspace + room);
    const int64_t e = (int64_t)r->element;
    r->facts.gpu.bytes = workspace;
    r->ld = gpb_resident_ld(r->work);
    r->a = at;
    r->b = at + (CUdeviceptr)(r->ld * f->n * e);
    r->beside = r->b + (CUdeviceptr)(r->ld * gpb_resident_b_cols(r->work) * e);
    const int64_t cols = f->n + gpb_resident_b_cols(r->work) + gpb_resident_beside(r->work);
    at += (CUdeviceptr)round_up(r->ld * cols * e, 256);
    gpb_residence_in_arena(r);
    if (results) r->of_b = carve(&at, results);
    if (r->work->given) carve_refined(r, &at);
    r->info = at;
    r->arrivals = at + 4;
    r->ipiv = at + 8;
    r->width = r->ipiv + 4 * (CUdeviceptr)order;
    r->moves = r->width + 4 * (CUdeviceptr)order;
    carve(&at, 8 + order * (4 + 4 + 2 * (int64_t)sizeof(gpb_row_move)));
    r->slots = at;
    r->panel_width = calloc((size_t)max(1, order), sizeof *r->panel_width);
    return r->panel_width ? NULL : "out of memory";
}

bool gpb_residence_provide_before_kept(gpb_residence *r)
{
    const int64_t n = r->work->system.a.n, before = r->lane->arena.kept, ld = r->lane->kept.ld_arena;
    const int64_t column = ld * (int64_t)r->element, b = column * gpb_resident_b_cols(r->work);
    const int64_t beside = column * gpb_resident_beside(r->work), workspace = workspace_of(r);
    const bool fits = workspace && workspace + bytes_of_pivots(r) + b + beside <= before;
    if (!before || !fits || !gpb_memory_arena(r->lane, before) || !r->lane->arena.kept
        || !gpb_memory_counters(r->lane))
        return false;
    r->facts.gpu.bytes = workspace;
    r->ld = ld;
    r->a = gpb_kept_at(r->lane);
    r->beside = r->a - (CUdeviceptr)beside;
    r->b = r->beside - (CUdeviceptr)b;
    gpb_residence_in_arena(r);
    r->info = r->lane->arena.at + (CUdeviceptr)workspace;
    r->arrivals = r->info + 4;
    r->moves = r->info + 8;
    r->width = r->moves + 2 * sizeof(gpb_row_move) * (CUdeviceptr)n;
    r->panel_width = calloc((size_t)n, sizeof *r->panel_width);
    return r->panel_width != NULL;
}

/* Some of the launches count arrivals or lower INFO. Of TRSM those for one column do, which a panel of B in
   the host's memory may be; to send the words takes 10 us. */
static bool has_words(const gpb_residence *r)
{
    const gpb_triangular *t = r->work->triangular;
    if (!t || r->work->inverts) return true;
    return t->solves && (r->on_host || (t->side == 'L' ? t->n : t->m) == 1);
}

CUresult gpb_residence_begin(gpb_residence *r)
{
    if (!has_words(r)) return CUDA_SUCCESS;
    const gpb_factor *f = &r->work->system.a;
    const int32_t start[2] = { GPB_NO_INFO, 0 };
    const size_t slots = (size_t)(2 * GPB_PANEL_BLOCKS(f->m) * GPB_PANEL_SLOT_BYTES);
    const CUresult result = gpb_residence_send(r, start, r->info, sizeof start);
    if (result || !r->work->factors || !gpb_factor_is_lu(f)) return result;
    return gpb_driver_get()->cuMemsetD2D32Async(r->slots, slots, 0, slots / 4, 1, r->lane->stream);
}

/* ---- pivots */

CUresult gpb_residence_fetch(gpb_residence *r, CUdeviceptr from, void *to, int64_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = CUDA_SUCCESS;
    for (int64_t at = 0; at < bytes && !result; at += GPB_TABLE_BYTES) {
        const size_t size = (size_t)min(bytes - at, GPB_TABLE_BYTES);
        result = gpb_dma_fetch(r->lane->table, from + (CUdeviceptr)at, size, r->lane->stream);
        if (!result) result = driver->cuStreamSynchronize(r->lane->stream);
        if (!result) memcpy((char *)to + at, r->lane->table, size);
    }
    return result;
}

CUresult gpb_residence_send(gpb_residence *r, const void *from, CUdeviceptr to, int64_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = CUDA_SUCCESS;
    for (int64_t at = 0; at < bytes && !result; at += GPB_TABLE_BYTES) {
        const size_t size = (size_t)min(bytes - at, GPB_TABLE_BYTES);
        memcpy(r->lane->table, (const char *)from + at, size);
        result = gpb_dma_send(to + (CUdeviceptr)at, r->lane->table, size, r->lane->stream);
        if (!result) result = driver->cuStreamSynchronize(r->lane->stream);
    }
    return result;
}

void gpb_residence_put_pivots(const gpb_factor *f, const int32_t *pivots)
{
    const int64_t order = gpb_factor_order(f);
    for (int64_t i = 0; i < order; i++)
        if (f->width == 64) ((int64_t *)f->ipiv)[i] = pivots[i];
        else ((int32_t *)f->ipiv)[i] = pivots[i];
}

/* The row that is exchanged with row i, from 0 on. */
static int64_t pivot_of(const gpb_factor *f, int64_t i)
{
    const void *ipiv = (const char *)f->ipiv + i * (f->width / 8);
    return (f->width == 64 ? *(const int64_t *)ipiv : *(const int32_t *)ipiv) - 1;
}

bool gpb_residence_columns(const gpb_factor *f, int32_t *columns)
{
    for (int64_t j = 0; j < f->n; j++) columns[j] = (int32_t)j;
    for (int64_t j = f->n - 1; j >= 0; j--) {
        const int64_t other = pivot_of(f, j);
        if (other < j || other >= f->n) return false;
        const int32_t here = columns[j];
        columns[j] = columns[other];
        columns[other] = here;
    }
    return true;
}

/* The caller's pivots as moves, in panels of some width. False: they are not of a factorisation. */
static bool moves_of(const gpb_factor *f, gpb_row_move *moves, int32_t *width)
{
    enum { PANEL = 32 };
    int32_t at[2 * PANEL], from[2 * PANEL];
    for (int64_t first = 0; first < f->n; first += PANEL) {
        const int32_t n = (int32_t)min((int64_t)PANEL, f->n - first);
        int count = n;
        for (int i = 0; i < n; i++) at[i] = from[i] = (int32_t)first + i;
        for (int i = 0; i < n; i++) {
            const int64_t row = pivot_of(f, first + i);
            if (row < first + i || row >= f->n) return false;
            int other = 0;
            while (other < count && at[other] != row) other++;
            if (other == count) {
                at[count] = from[count] = (int32_t)row;
                count++;
            }
            const int32_t kept = from[i];
            from[i] = from[other];
            from[other] = kept;
        }
        for (int i = 0; i < 2 * n; i++) {
            const int which = i < count ? i : 0;           /* some moves twice, as panels have them */
            moves[2 * first + i] = (gpb_row_move){ at[which], from[which] };
        }
        width[first] = width[first + n - 1] = n;
    }
    return true;
}

void gpb_residence_send_pivots(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    gpb_row_move *moves = calloc((size_t)(2 * f->n), sizeof *moves);
    if (!moves) r->why = "out of memory";
    else if (!moves_of(f, moves, r->panel_width)) r->why = "ipiv is of no factorisation";
    if (!r->why) r->result = gpb_residence_send(r, moves, r->moves, 2 * f->n * (int64_t)sizeof *moves);
    if (!r->why && !r->result) r->result = gpb_residence_send(r, r->panel_width, r->width, 4 * f->n);
    free(moves);
}
