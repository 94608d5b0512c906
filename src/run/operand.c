/* SPDX-License-Identifier: MIT */
/* Operands of a run; see operand.h. */
#include "src/run/operand.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "kernels/split.h"
#include "src/service/clock.h"
#include "src/gpu/kernels.h"

enum { NONE = -1 };                   /* a strip's number */

/* ---- memory */

enum { TABLES = 4 };
static const int64_t table_bytes[TABLES] = { sizeof(gpb_gemm_item), sizeof(void *), sizeof(void *), sizeof(void *) };

/* Where a table begins, in bytes from the first. */
static int64_t table_place(const gpb_plan *plan, int which)
{
    int64_t at = 0;
    for (int i = 0; i < which; i++) at += round_up(table_bytes[i] * plan->group, 256);
    return at;
}

CUdeviceptr gpb_operand_table(const gpb_run *r, int which) { return r->tables + (CUdeviceptr)table_place(r->plan, which); }

int64_t gpb_operand_tables(const gpb_call *call, const gpb_plan *plan)
{
    return call->x[GPB_A].array || call->x[GPB_B].array || call->x[GPB_C].array ? table_place(plan, TABLES) : 0;
}

/* Members of an array that lie equally far apart are a strided batch: no table of them need be sent. */
static void straighten(gpb_run_operand *x, int64_t between)
{
    if (!x->stored.array || x->place != GPB_PLACE_DEVICE || between < 0) return;
    x->stored.base = x->stored.array[0], x->stored.stride = between, x->stored.array = NULL;
}

static CUdeviceptr cut(CUdeviceptr *arena, int64_t bytes)
{
    CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)bytes;
    return bytes ? at : 0;
}

/* The operand with its buffers, and the distances between them and between strips in them. */
static gpb_run_operand operand(const gpb_plan *plan, int64_t bytes, int buffers, int64_t strip)
{
    return (gpb_run_operand){ .buffers = buffers, .buffer_bytes = bytes / buffers, .strip = strip,
                          .strip_bytes = gpb_plan_strip_bytes(strip, plan->kc, plan->group), .fresh = NONE };
}

gpb_run gpb_operand_begin(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    gpb_run r = { .lane = lane, .stream = lane->stream, .call = call, .plan = plan, .progress = progress, .element = gpb_call_element(call),
                  .a = operand(plan, plan->panel[GPB_A].bytes, plan->panel[GPB_A].buffers, min(plan->panel[GPB_A].strip, plan->panel[GPB_A].extent)),
                  .b = operand(plan, plan->panel[GPB_B].bytes, plan->panel[GPB_B].buffers, min(plan->panel[GPB_B].strip, plan->panel[GPB_B].extent)),
                  .c = operand(plan, plan->panel[GPB_C].bytes, plan->panel[GPB_C].buffers, 0) };
    r.a.stored = call->x[GPB_A], r.a.place = facts->where[GPB_A].place;
    r.b.stored = call->x[GPB_B], r.b.place = facts->where[GPB_B].place;
    r.c.stored = call->x[GPB_C], r.c.place = facts->where[GPB_C].place;
    straighten(&r.a, facts->where[GPB_A].member_stride), straighten(&r.b, facts->where[GPB_B].member_stride), straighten(&r.c, facts->where[GPB_C].member_stride);
    r.a.is_a = true;
    r.a.k_down = gpb_call_k_down(call, GPB_A), r.b.k_down = gpb_call_k_down(call, GPB_B);
    CUdeviceptr arena = lane->arena.at;
    const bool aligned = plan->kernel->form == GPB_FORM_SPLIT && plan->bytes_parts;
    const int64_t lost = aligned ? (int64_t)(-arena % GPB_PLAN_ALIGNED) : 0;      /* bytes_parts has room for that */
    arena += (CUdeviceptr)lost;
    r.a.panel = cut(&arena, plan->panel[GPB_A].bytes), r.b.panel = cut(&arena, plan->panel[GPB_B].bytes), r.c.panel = cut(&arena, plan->panel[GPB_C].bytes);
    r.a.packed = cut(&arena, plan->panel[GPB_A].bytes_packed), r.b.packed = cut(&arena, plan->panel[GPB_B].bytes_packed), r.c.packed = cut(&arena, plan->panel[GPB_C].bytes_packed);
    r.wide_a = cut(&arena, plan->panel[GPB_A].bytes_wide), r.wide_b = cut(&arena, plan->panel[GPB_B].bytes_wide);
    r.parts = cut(&arena, plan->bytes_parts ? plan->bytes_parts - lost : 0);
    r.tables = arena;
    return r;
}

/* ---- tables of addresses */

/* Where the members of an operand are, from the first of a tile's on. */
typedef struct members {
    CUdeviceptr at;                       /* the first */
    const void *const *array;             /* the caller's: the others lie as far from the first as these say; else NULL: */
    int64_t between;                      /* bytes */
} members;

static members members_of(const gpb_run *r, const gpb_run_operand *x, const gpb_view *view, const gpb_region *t)
{
    if (!view) return (members){ 0 };
    return (members){ view->at, view->scattered ? x->stored.array + t->member : NULL, view->between * (int64_t)r->element };
}

/* Addresses of members [first, first + count), `every` addresses apart. A nanosecond each: batches have thousands. */
static void put(CUdeviceptr *to, int every, const members *x, int64_t first, int64_t count)
{
    if (x->array) {
        const CUdeviceptr on = x->at - (CUdeviceptr)(uintptr_t)x->array[0];
        for (int64_t l = 0; l < count; l++) to[l * every] = (CUdeviceptr)(uintptr_t)x->array[first + l] + on;
    } else {
        CUdeviceptr at = x->at + (CUdeviceptr)(first * x->between);
        for (int64_t l = 0; l < count; l++, at += (CUdeviceptr)x->between) to[l * every] = at;
    }
}

/* A table for kernels, a row of `columns` addresses for each of so many members: written into the lane's own pinned memory, as many rows
   at a time as there is room for. */
static CUresult send_table(gpb_run *r, int which, const members *column, int columns, int64_t rows)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    const size_t bytes = (size_t)columns * sizeof(CUdeviceptr);
    CUresult result = CUDA_SUCCESS;
    for (int64_t row = 0, count; row < rows && !result; row += count) {
        if (GPB_TABLE_BYTES - r->table_used < bytes) {
            result = driver->cuStreamSynchronize(r->stream);      /* what was sent before has been read */
            if (result) break;
            r->table_used = 0;
        }
        count = min(rows - row, (int64_t)((GPB_TABLE_BYTES - r->table_used) / bytes));
        CUdeviceptr *at = (CUdeviceptr *)(void *)(r->lane->table + r->table_used);
        for (int i = 0; i < columns; i++) put(at + i, columns, &column[i], row, count);
        result = driver->cuMemcpyHtoDAsync(gpb_operand_table(r, which) + (CUdeviceptr)row * bytes, at, (size_t)count * bytes, r->stream);
        r->table_used += (size_t)count * bytes;
    }
    return result;
}

/* For packing: where the members of A, B or C lie. */
static CUresult send_addresses(gpb_run *r, const gpb_run_operand *x, const gpb_region *t, int which)
{
    const members column = members_of(r, x, &x->raw, t);
    return send_table(r, which, &column, 1, t->members);
}

CUresult gpb_operand_bind_args(gpb_run *r, const gpb_region *t, const gpb_view *a, const gpb_view *b, const gpb_view *c, gpb_gemm_args *args)
{
    args->rsa = args->csa = args->rsb = args->csb = 1;
    if (a) {
        args->a = (void *)(uintptr_t)a->at, args->rsa = a->rs, args->csa = a->cs, args->stride_a = a->between;
        args->b = (void *)(uintptr_t)b->at, args->rsb = b->rs, args->csb = b->cs, args->stride_b = b->between;
    }
    args->c = (void *)(uintptr_t)c->at, args->ldc = c->cs, args->stride_c = c->between;
    args->items = NULL;
    if (!c->scattered && !(a && (a->scattered || b->scattered))) return CUDA_SUCCESS;
    _Static_assert(sizeof(gpb_gemm_item) == 3 * sizeof(CUdeviceptr) && offsetof(gpb_gemm_item, b) == sizeof(CUdeviceptr)
                   && offsetof(gpb_gemm_item, c) == 2 * sizeof(CUdeviceptr), "a row of the table is an item");
    const members column[] = { members_of(r, &r->a, a, t), members_of(r, &r->b, b, t), members_of(r, &r->c, c, t) };
    args->items = (const gpb_gemm_item *)(uintptr_t)gpb_operand_table(r, 0);
    return send_table(r, 0, column, 3, t->members);
}

/* ---- A and B */

static gpb_run_operand *operand_of(gpb_run *r, const gpb_move *move) { return move->operand == 'a' ? &r->a : &r->b; }

gpb_stored gpb_operand_stored(const gpb_run *r, const gpb_move *move)
{
    const gpb_run_operand *x = move->operand == 'a' ? &r->a : &r->b;
    const int64_t from = move->strip * x->strip, at = from + (x->is_a ? move->block.i : move->block.j);
    const int64_t size = min(x->strip, (x->is_a ? move->block.rows : move->block.cols) - from);
    return x->k_down ? (gpb_stored){ .row = move->p, .rows = move->k1, .col = at, .cols = size }
                     : (gpb_stored){ .row = at, .rows = size, .col = move->p, .cols = move->k1 };
}

static CUdeviceptr buffer_of(const gpb_run_operand *x, int64_t number)
{
    return x->panel + (CUdeviceptr)(number % x->buffers * x->buffer_bytes);
}

CUdeviceptr gpb_operand_strip(const gpb_run *r, const gpb_move *move)
{
    const gpb_run_operand *x = move->operand == 'a' ? &r->a : &r->b;
    return buffer_of(x, move->panel[!x->is_a]) + (CUdeviceptr)(move->strip * x->strip_bytes);
}

CUdeviceptr gpb_operand_block(const gpb_run *r, const gpb_move *move) { return buffer_of(&r->c, move->panel[2]); }

/* The panel as it came, from its first strip on. */
static CUresult view(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_region *t = &move->block;
    CUresult result = CUDA_SUCCESS;
    if (x->place != GPB_PLACE_DEVICE) {
        x->raw = (gpb_view){ .at = buffer_of(x, move->panel[!x->is_a]) };
        x->raw_strip = x->strip_bytes / (int64_t)r->element;
        return result;
    }
    gpb_move first = *move;
    first.strip = 0;
    const gpb_stored at = gpb_operand_stored(r, &first);
    const int64_t shift = at.row + at.col * x->stored.ld;
    const void *member = gpb_matrix_member(&x->stored, t->member, r->element);
    x->raw = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element, .scattered = x->stored.array && t->members > 1 };
    x->raw_strip = x->k_down ? x->strip * x->stored.ld : x->strip;
    if (x->raw.scattered && x->packed) result = send_addresses(r, x, t, x->is_a ? 1 : 2);
    return result;
}

/* rows x k1 of op(A), or k1 x rows of op(B), from strip number `strip` on; members apart as the piece has them. */
static gpb_view raw_view(const gpb_run *r, const gpb_run_operand *x, const gpb_launch_set *piece)
{
    const int64_t size = x->is_a ? piece->tile.rows : piece->tile.cols, strip = x->is_a ? piece->strip_a : piece->strip_b;
    const int64_t ld = x->place == GPB_PLACE_DEVICE ? x->stored.ld : x->k_down ? x->k1 : size;
    gpb_view v = x->raw;
    v.at += (CUdeviceptr)(strip * x->raw_strip) * r->element;
    const bool transposed = gpb_matrix_transposed(&x->stored);
    v.rs = transposed ? ld : 1, v.cs = transposed ? 1 : ld;
    v.between = x->place == GPB_PLACE_DEVICE ? x->stored.stride : size * x->k1;
    if (piece->count > 1) v.between = piece->along == (x->is_a ? 'a' : 'b') ? x->raw_strip : 0;
    return v;
}

/* Zero-padded to whole tiles, by gpb_spack: a panel of one strip. */
static CUresult pack(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_kernel *kernel = r->plan->kernel;
    const gpb_region *t = &move->block;
    const gpb_launch_set whole = { .tile = *t, .count = 1 };
    const gpb_view raw = raw_view(r, x, &whole);
    gpb_pack_args args = { .src = (void *)(uintptr_t)raw.at, .rs = raw.rs, .cs = raw.cs, .rows = x->is_a ? t->rows : move->k1,
                           .cols = x->is_a ? move->k1 : t->cols, .dst = (void *)(uintptr_t)x->packed, .batch = t->members,
                           .stride_src = raw.between };
    args.rows_padded = round_up(args.rows, x->is_a ? kernel->bm : kernel->bk);
    args.cols_padded = round_up(args.cols, x->is_a ? kernel->bk : kernel->bn);
    if (raw.scattered) args.src_items = (const void *const *)(uintptr_t)gpb_operand_table(r, x->is_a ? 1 : 2);
    args.ld = args.rows_padded;
    args.stride_dst = args.ld * args.cols_padded;
    x->given = (gpb_view){ .at = x->packed, .rs = 1, .cs = args.ld, .between = args.stride_dst };
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = GPB_FUNCTION_PACK, .blocks = GPB_TILES(args.rows_padded, args.cols_padded, GPB_PACK_TILE, GPB_PACK_TILE),
        .members = t->members, .args = &args });
}

/* Where a process's epochs begin: device memory may still hold what another process wrote there. Not 0. */
static uint64_t first_epoch(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = (uint64_t)gpb_clock_ns() ^ (uint64_t)getpid() << 40;
    return seed ? seed : 1;
}

/* A number that no other launch of gpb_ssplit in this process has, nor stale memory: 64 bits, a large odd number apart. */
static uint64_t next_epoch(void)
{
    static _Atomic uint64_t last;
    uint64_t epoch = atomic_load_explicit(&last, memory_order_relaxed);
    if (epoch == 0) atomic_compare_exchange_strong_explicit(&last, &epoch, first_epoch(), memory_order_relaxed, memory_order_relaxed);
    do epoch = atomic_fetch_add_explicit(&last, 0x9e3779b97f4a7c15, memory_order_relaxed) + 0x9e3779b97f4a7c15;
    while (epoch == 0);
    return epoch;
}

/* X = op(A), or op(B) transposed, as gpb_ssplit is told of it. */
static gpb_split_operand to_split(const gpb_run *r, const gpb_run_operand *x, const gpb_launch_set *piece, CUdeviceptr to, uint64_t epoch)
{
    const gpb_view raw = raw_view(r, x, piece);
    gpb_split_operand s = { .src = (void *)(uintptr_t)raw.at, .rs = x->is_a ? raw.rs : raw.cs, .cs = x->is_a ? raw.cs : raw.rs,
                            .rows = x->is_a ? piece->tile.rows : piece->tile.cols, .stride = raw.between, .dst = (void *)(uintptr_t)to,
                            .epoch = epoch };
    if (raw.scattered) s.src_items = (const void *const *)(uintptr_t)gpb_operand_table(r, x->is_a ? 1 : 2);
    return s;
}

static CUresult launch_split(gpb_run *r, gpb_split_args *args)
{
    int sharers;
    const int which = gpb_kernels_slicer(r->lane->device, args->k, args->slices, &sharers);
    const int64_t strips = GPB_SPLIT_STRIPS(args->a.rows) + GPB_SPLIT_STRIPS(args->b.rows);
    args->counters = (uint32_t *)(uintptr_t)r->parts;
    args->notice = r->lane->notice;
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = which, .blocks = (strips ? strips : 1) * sharers, .members = args->batch, .args = args });
}

/* The strip of x that has come, if it is not split yet. */
static gpb_split_operand fresh_strip(const gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    if (x->fresh == NONE) return (gpb_split_operand){ 0 };
    gpb_launch_set piece = { .tile = move->block, .count = 1, .strip_a = x->fresh, .strip_b = x->fresh };
    piece.tile.rows = min(r->a.strip, move->block.rows - x->fresh * r->a.strip);
    piece.tile.cols = min(r->b.strip, move->block.cols - x->fresh * r->b.strip);
    const CUdeviceptr to = x->packed + (CUdeviceptr)(x->fresh * x->given_strip);
    x->fresh = NONE;
    return to_split(r, x, &piece, to, x->epoch);
}

CUresult gpb_operand_slice(gpb_run *r, const gpb_move *move)
{
    gpb_split_args args = { .a = fresh_strip(r, &r->a, move), .b = fresh_strip(r, &r->b, move), .k = move->k1,
                            .batch = move->block.members, .slices = gpb_plan_slices(r->plan->kernel) };
    return launch_split(r, &args);
}

/* Slices of `rows` rows, a member after the other. */
static gpb_view slices_at(CUdeviceptr at, int64_t rows, int64_t k, int slices)
{
    return (gpb_view){ .at = at, .rs = 1, .cs = 1, .between = gpb_split_bytes(rows, k, slices) / (int64_t)sizeof(float) };
}

CUresult gpb_operand_slice_wide(gpb_run *r, const gpb_launch_set *piece, const gpb_gemm_args *of, gpb_view *a, gpb_view *b)
{
    const uint64_t epoch = next_epoch();
    const gpb_region *t = &piece->tile;
    gpb_split_args args = { .k = of->k, .batch = t->members, .slices = gpb_plan_slices(r->plan->wide),
                            .if_a = of->guard_a + gpb_split_guards(t->rows), .if_b = of->guard_b + gpb_split_guards(t->cols),
                            .stride_if_a = of->stride_guard_a, .stride_if_b = of->stride_guard_b, .epoch_if_a = of->epoch_a,
                            .epoch_if_b = of->epoch_b };
    args.a = to_split(r, &r->a, piece, r->wide_a, epoch);
    args.b = to_split(r, &r->b, piece, r->wide_b, epoch);
    *a = slices_at(r->wide_a, t->rows, of->k, args.slices);
    *b = slices_at(r->wide_b, t->cols, of->k, args.slices);
    return launch_split(r, &args);
}

/* A strip that kernels split by themselves need not wait; two operands in place are split in one launch. */
CUresult gpb_operand_prepare(gpb_run *r, const gpb_move *move)
{
    gpb_run_operand *x = operand_of(r, move);
    const bool slices = r->plan->kernel->form == GPB_FORM_SPLIT;
    if (x->at_panel != move->panel[!x->is_a]) {
        x->at_panel = move->panel[!x->is_a];
        x->fresh = NONE;      /* of the last panel one may have unlocked nothing (a triangle) */
        x->k1 = move->k1;
        x->epoch = slices ? next_epoch() : 0;
        x->given_strip = slices ? gpb_split_bytes(x->strip, move->k1, gpb_plan_slices(r->plan->kernel)) : 0;
        CUresult result = view(r, x, move);
        if (result) return result;
    }
    if (slices) {
        CUresult result = x->fresh == NONE ? CUDA_SUCCESS : gpb_operand_slice(r, move);      /* one came before that unlocked nothing */
        if (result) return result;
        x->fresh = move->strip;
        const bool alone = r->a.fresh == NONE || r->b.fresh == NONE;
        return x->place == GPB_PLACE_DEVICE && alone && move->tile.rows == 0 ? CUDA_SUCCESS : gpb_operand_slice(r, move);
    }
    return x->packed ? pack(r, x, move) : CUDA_SUCCESS;
}

gpb_view gpb_operand_view(const gpb_run *r, const gpb_run_operand *x, bool given, const gpb_launch_set *piece)
{
    if (!given || !x->packed) return raw_view(r, x, piece);
    if (r->plan->kernel->form != GPB_FORM_SPLIT) return x->given;
    const int64_t strip = x->is_a ? piece->strip_a : piece->strip_b;
    gpb_view v = slices_at(x->packed + (CUdeviceptr)(strip * x->given_strip), x->is_a ? piece->tile.rows : piece->tile.cols, x->k1,
                           gpb_plan_slices(r->plan->kernel));
    if (piece->count > 1) v.between = piece->along == (x->is_a ? 'a' : 'b') ? x->given_strip / (int64_t)sizeof(float) : 0;
    return v;
}

/* ---- C */

CUresult gpb_operand_prepare_c(gpb_run *r, const gpb_move *move)
{
    gpb_run_operand *c = &r->c;
    const gpb_region *t = &move->block;
    const gpb_kernel *kernel = r->plan->kernel;
    CUresult result = CUDA_SUCCESS;
    if (c->at_panel == move->panel[2]) return result;
    c->at_panel = move->panel[2];
    if (c->place == GPB_PLACE_DEVICE) {
        const int64_t shift = t->i + t->j * c->stored.ld;
        const void *member = gpb_matrix_member(&c->stored, t->member, r->element);
        c->raw = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element, .rs = 1, .cs = c->stored.ld,
                             .between = c->stored.stride, .scattered = c->stored.array && t->members > 1 };
        if (c->raw.scattered && c->packed) result = send_addresses(r, c, t, 3);
    } else {
        c->raw = (gpb_view){ .at = gpb_operand_block(r, move), .rs = 1, .cs = t->rows, .between = t->rows * t->cols };
    }
    c->given = c->raw;
    if (c->packed) {
        int64_t ld = round_up(t->rows, kernel->bm);
        c->given = (gpb_view){ .at = c->packed, .rs = 1, .cs = ld, .between = ld * round_up(t->cols, kernel->bn) };
    }
    return result;
}

gpb_view gpb_operand_view_c(const gpb_run *r, const gpb_move *move, const gpb_launch_set *piece)
{
    gpb_view v = r->c.given;
    v.at += (CUdeviceptr)(piece->tile.i - move->block.i + (piece->tile.j - move->block.j) * v.cs) * r->element;
    if (piece->count > 1) v.between = piece->along == 'a' ? r->a.strip : r->b.strip * v.cs;
    return v;
}
