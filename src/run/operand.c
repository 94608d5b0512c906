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

enum { TABLES = GPB_OPERANDS + 1 };
static const int64_t table_bytes[TABLES] = { sizeof(void *), sizeof(void *), sizeof(void *), sizeof(gpb_gemm_item) };

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
    return gpb_call_arrays(call) ? table_place(plan, TABLES) : 0;
}

/* Members of an array that lie equally far apart are a strided batch: no table of them need be sent. */
static void straighten(gpb_matrix *x, const gpb_where *where)
{
    if (!x->array || where->place != GPB_PLACE_DEVICE || where->member_stride < 0) return;
    x->base = x->array[0], x->stride = where->member_stride, x->array = NULL;
}

static CUdeviceptr cut(CUdeviceptr *arena, int64_t bytes)
{
    CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)bytes;
    return bytes ? at : 0;
}

/* The operand with its buffers, and the distances between them and between strips in them. */
static gpb_run_operand operand(const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, enum gpb_operand which)
{
    const gpb_panels *p = &plan->panel[which];
    gpb_run_operand x = { .which = which, .stored = call->x[which], .place = facts->where[which].place, .buffers = p->buffers,
                          .buffer_bytes = p->bytes / p->buffers, .unsliced = NONE };
    if (which != GPB_C) {
        x.k_down = gpb_call_k_down(call, which);
        x.strip = min(p->strip, p->extent);
        x.strip_bytes = gpb_plan_strip_bytes(x.strip, plan->kc, plan->group, gpb_call_element(call));
    }
    straighten(&x.stored, &facts->where[which]);
    return x;
}

gpb_run gpb_operand_begin(gpb_lane *lane, gpb_job *job)
{
    const gpb_call *call = job->call;
    const gpb_plan *plan = &job->plan;
    const gpb_panels *p = plan->panel;
    gpb_run r = { .lane = lane, .stream = lane->stream, .call = call, .plan = plan, .progress = &job->progress,
                  .element = gpb_call_element(call) };
    CUdeviceptr arena = lane->arena.at;
    const bool aligned = plan->kernel->form == GPB_FORM_SPLIT && plan->bytes_parts;
    const int64_t lost = aligned ? (int64_t)(-arena % GPB_PLAN_ALIGNED) : 0;      /* bytes_parts has room for that */
    arena += (CUdeviceptr)lost;
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x] = operand(call, plan, job->facts, x);
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].panel = cut(&arena, p[x].bytes);
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].packed = cut(&arena, p[x].bytes_packed);
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].wide = cut(&arena, p[x].bytes_wide);
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
    return (members){ view->at, view->scattered ? x->stored.array + t->member : NULL, view->member_stride * (int64_t)r->element };
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

/* For packing: where the operand's members lie. */
static CUresult send_addresses(gpb_run *r, const gpb_run_operand *x, const gpb_region *t)
{
    const members column = members_of(r, x, &x->source, t);
    return send_table(r, x->which, &column, 1, t->members);
}

CUresult gpb_operand_bind_args(gpb_run *r, const gpb_region *t, const gpb_view *a, const gpb_view *b, const gpb_view *c, gpb_gemm_args *args)
{
    args->rsa = args->csa = args->rsb = args->csb = 1;
    if (a) {
        args->a = (void *)(uintptr_t)a->at, args->rsa = a->rs, args->csa = a->cs, args->stride_a = a->member_stride;
        args->b = (void *)(uintptr_t)b->at, args->rsb = b->cs, args->csb = b->rs, args->stride_b = b->member_stride;
    }
    args->c = (void *)(uintptr_t)c->at, args->ldc = c->cs, args->stride_c = c->member_stride;
    args->items = NULL;
    if (!c->scattered && !(a && (a->scattered || b->scattered))) return CUDA_SUCCESS;
    _Static_assert(sizeof(gpb_gemm_item) == 3 * sizeof(CUdeviceptr) && offsetof(gpb_gemm_item, b) == sizeof(CUdeviceptr)
                   && offsetof(gpb_gemm_item, c) == 2 * sizeof(CUdeviceptr), "a row of the table is an item");
    const members column[] = { members_of(r, &r->x[GPB_A], a, t), members_of(r, &r->x[GPB_B], b, t),
                               members_of(r, &r->x[GPB_C], c, t) };
    args->items = (const gpb_gemm_item *)(uintptr_t)gpb_operand_table(r, GPB_OPERAND_TRIPLES);
    return send_table(r, GPB_OPERAND_TRIPLES, column, GPB_OPERANDS, t->members);
}

/* ---- A and B */

gpb_stored gpb_operand_stored(const gpb_run *r, const gpb_move *move)
{
    const gpb_run_operand *x = &r->x[move->operand];
    const int64_t from = move->strip * x->strip, at = from + move->block.at[x->which];
    const int64_t size = min(x->strip, move->block.size[x->which] - from);
    return x->k_down ? (gpb_stored){ .row = move->p, .rows = move->depth, .col = at, .cols = size }
                     : (gpb_stored){ .row = at, .rows = size, .col = move->p, .cols = move->depth };
}

static CUdeviceptr buffer_of(const gpb_run_operand *x, int64_t number)
{
    return x->panel + (CUdeviceptr)(number % x->buffers * x->buffer_bytes);
}

CUdeviceptr gpb_operand_strip(const gpb_run *r, const gpb_move *move)
{
    const gpb_run_operand *x = &r->x[move->operand];
    return buffer_of(x, move->panel[x->which]) + (CUdeviceptr)(move->strip * x->strip_bytes);
}

CUdeviceptr gpb_operand_block(const gpb_run *r, const gpb_move *move) { return buffer_of(&r->x[GPB_C], move->panel[GPB_C]); }

/* The panel as it came, from its first strip on. */
static CUresult view(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_region *t = &move->block;
    CUresult result = CUDA_SUCCESS;
    if (x->place != GPB_PLACE_DEVICE) {
        x->source = (gpb_view){ .at = buffer_of(x, move->panel[x->which]) };
        x->source_strip = x->strip_bytes / (int64_t)r->element;
        return result;
    }
    gpb_move first = *move;
    first.strip = 0;
    const gpb_stored at = gpb_operand_stored(r, &first);
    const int64_t shift = at.row + at.col * x->stored.ld;
    const void *member = gpb_matrix_member(&x->stored, t->member, r->element);
    x->source = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element, .scattered = x->stored.array && t->members > 1 };
    x->source_strip = x->k_down ? x->strip * x->stored.ld : x->strip;
    if (x->source.scattered && x->packed) result = send_addresses(r, x, t);
    return result;
}

/* rows x depth of op(A) or of op(B) transposed, from strip number `strip` on; members apart as the piece has them. */
static gpb_view source_view(const gpb_run *r, const gpb_run_operand *x, const gpb_launch_set *piece)
{
    const int64_t size = piece->tile.size[x->which], ld = x->place == GPB_PLACE_DEVICE ? x->stored.ld : x->k_down ? x->depth : size;
    gpb_view v = x->source;
    v.at += (CUdeviceptr)(piece->strip[x->which] * x->source_strip) * r->element;
    v.rs = x->k_down ? ld : 1, v.cs = x->k_down ? 1 : ld;
    v.member_stride = x->place == GPB_PLACE_DEVICE ? x->stored.stride : size * x->depth;
    if (piece->count > 1) v.member_stride = piece->along == x->which ? x->source_strip : 0;
    return v;
}

/* Zero-padded to whole tiles, by gpb_spack, which sees op(A) or op(B): a panel of one strip. */
static CUresult pack(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_kernel *kernel = r->plan->kernel;
    const gpb_region *t = &move->block;
    const gpb_view raw = source_view(r, x, &(gpb_launch_set){ .tile = *t, .count = 1 });
    const int64_t size[] = { t->size[x->which], move->depth }, edge[] = { gpb_kernel_table_edge(kernel, x->which), kernel->bk };
    const int64_t step[] = { raw.rs, raw.cs };
    const int down = x->which, across = !down;      /* of these two: B's k goes down */
    gpb_pack_args args = { .src = (void *)(uintptr_t)raw.at, .rs = step[down], .cs = step[across], .rows = size[down], .cols = size[across],
                           .dst = (void *)(uintptr_t)x->packed, .batch = t->members, .stride_src = raw.member_stride };
    args.rows_padded = round_up(args.rows, edge[down]);
    args.cols_padded = round_up(args.cols, edge[across]);
    if (raw.scattered) args.src_items = (const void *const *)(uintptr_t)gpb_operand_table(r, x->which);
    args.ld = args.rows_padded;
    args.stride_dst = args.ld * args.cols_padded;
    const int64_t packed_step[] = { 1, args.ld };
    x->ready = (gpb_view){ .at = x->packed, .rs = packed_step[down], .cs = packed_step[across], .member_stride = args.stride_dst };
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

/* The operand as gpb_ssplit is told of it. */
static gpb_split_operand to_split(const gpb_run *r, enum gpb_operand which, const gpb_launch_set *piece, CUdeviceptr to, uint64_t epoch)
{
    const gpb_view raw = source_view(r, &r->x[which], piece);
    gpb_split_operand s = { .src = (void *)(uintptr_t)raw.at, .rs = raw.rs, .cs = raw.cs, .rows = piece->tile.size[which],
                            .stride = raw.member_stride, .dst = (void *)(uintptr_t)to, .epoch = epoch };
    if (raw.scattered) s.src_items = (const void *const *)(uintptr_t)gpb_operand_table(r, which);
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

/* The operand's strip that has come, if it is not split yet. */
static gpb_split_operand unsliced_strip(gpb_run *r, enum gpb_operand which, const gpb_move *move)
{
    gpb_run_operand *x = &r->x[which];
    const int64_t strip = x->unsliced;
    if (strip == NONE) return (gpb_split_operand){ 0 };
    gpb_launch_set piece = { .tile = move->block, .count = 1 };
    piece.strip[which] = strip;
    piece.tile.size[which] = min(x->strip, move->block.size[which] - strip * x->strip);
    x->unsliced = NONE;
    return to_split(r, which, &piece, x->packed + (CUdeviceptr)(strip * x->ready_strip), x->epoch);
}

CUresult gpb_operand_slice(gpb_run *r, const gpb_move *move)
{
    gpb_split_args args = { .k = move->depth, .batch = move->block.members, .slices = gpb_plan_slices(r->plan->kernel) };
    args.a = unsliced_strip(r, GPB_A, move), args.b = unsliced_strip(r, GPB_B, move);
    return launch_split(r, &args);
}

/* Slices of `rows` rows, a member after the other. */
static gpb_view slices_at(CUdeviceptr at, int64_t rows, int64_t k, int slices)
{
    return (gpb_view){ .at = at, .rs = 1, .cs = 1, .member_stride = gpb_split_bytes(rows, k, slices) / (int64_t)sizeof(float) };
}

CUresult gpb_operand_slice_wide(gpb_run *r, const gpb_launch_set *piece, const gpb_gemm_args *of, gpb_view *a, gpb_view *b)
{
    const uint64_t epoch = next_epoch();
    const gpb_region *t = &piece->tile;
    gpb_split_args args = { .k = of->k, .batch = t->members, .slices = gpb_plan_slices(r->plan->wide),
                            .if_a = of->guard_a + gpb_split_guards(t->rows), .if_b = of->guard_b + gpb_split_guards(t->cols),
                            .stride_if_a = of->stride_guard_a, .stride_if_b = of->stride_guard_b, .epoch_if_a = of->epoch_a,
                            .epoch_if_b = of->epoch_b };
    args.a = to_split(r, GPB_A, piece, r->x[GPB_A].wide, epoch);
    args.b = to_split(r, GPB_B, piece, r->x[GPB_B].wide, epoch);
    *a = slices_at(r->x[GPB_A].wide, t->rows, of->k, args.slices);
    *b = slices_at(r->x[GPB_B].wide, t->cols, of->k, args.slices);
    return launch_split(r, &args);
}

/* A strip that kernels split by themselves need not wait; two operands in place are split in one launch. */
CUresult gpb_operand_prepare(gpb_run *r, const gpb_move *move)
{
    gpb_run_operand *x = &r->x[move->operand];
    const bool slices = r->plan->kernel->form == GPB_FORM_SPLIT;
    if (x->at_panel != move->panel[x->which]) {
        x->at_panel = move->panel[x->which];
        x->unsliced = NONE;      /* of the last panel one may have unlocked nothing (a triangle) */
        x->depth = move->depth;
        x->epoch = slices ? next_epoch() : 0;
        x->ready_strip = slices ? gpb_split_bytes(x->strip, move->depth, gpb_plan_slices(r->plan->kernel)) : 0;
        CUresult result = view(r, x, move);
        if (result) return result;
    }
    if (slices) {
        CUresult result = x->unsliced == NONE ? CUDA_SUCCESS : gpb_operand_slice(r, move);      /* one came before that unlocked nothing */
        if (result) return result;
        x->unsliced = move->strip;
        const bool alone = r->x[GPB_A].unsliced == NONE || r->x[GPB_B].unsliced == NONE;
        return x->place == GPB_PLACE_DEVICE && alone && move->tile.rows == 0 ? CUDA_SUCCESS : gpb_operand_slice(r, move);
    }
    return x->packed ? pack(r, x, move) : CUDA_SUCCESS;
}

gpb_view gpb_operand_view(const gpb_run *r, enum gpb_operand which, bool ready, const gpb_launch_set *piece)
{
    const gpb_run_operand *x = &r->x[which];
    if (!ready || !x->packed) return source_view(r, x, piece);
    if (r->plan->kernel->form != GPB_FORM_SPLIT) return x->ready;
    const CUdeviceptr at = x->packed + (CUdeviceptr)(piece->strip[which] * x->ready_strip);
    gpb_view v = slices_at(at, piece->tile.size[which], x->depth, gpb_plan_slices(r->plan->kernel));
    if (piece->count > 1) v.member_stride = piece->along == which ? x->ready_strip / (int64_t)sizeof(float) : 0;
    return v;
}

/* ---- C */

CUresult gpb_operand_prepare_c(gpb_run *r, const gpb_move *move)
{
    gpb_run_operand *c = &r->x[GPB_C];
    const gpb_region *t = &move->block;
    const gpb_kernel *kernel = r->plan->kernel;
    CUresult result = CUDA_SUCCESS;
    if (c->at_panel == move->panel[GPB_C]) return result;
    c->at_panel = move->panel[GPB_C];
    if (c->place == GPB_PLACE_DEVICE) {
        const int64_t shift = t->i + t->j * c->stored.ld;
        const void *member = gpb_matrix_member(&c->stored, t->member, r->element);
        c->source = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element, .rs = 1, .cs = c->stored.ld,
                             .member_stride = c->stored.stride, .scattered = c->stored.array && t->members > 1 };
        if (c->source.scattered && c->packed) result = send_addresses(r, c, t);
    } else {
        c->source = (gpb_view){ .at = gpb_operand_block(r, move), .rs = 1, .cs = t->rows, .member_stride = t->rows * t->cols };
    }
    c->ready = c->source;
    if (c->packed) {
        int64_t ld = round_up(t->rows, kernel->bm);
        c->ready = (gpb_view){ .at = c->packed, .rs = 1, .cs = ld, .member_stride = ld * round_up(t->cols, kernel->bn) };
    }
    return result;
}

gpb_view gpb_operand_view_c(const gpb_run *r, const gpb_move *move, const gpb_launch_set *piece)
{
    gpb_view v = r->x[GPB_C].ready;
    v.at += (CUdeviceptr)(piece->tile.i - move->block.i + (piece->tile.j - move->block.j) * v.cs) * r->element;
    const int64_t step[] = { 1, v.cs };
    if (piece->count > 1) v.member_stride = r->x[piece->along].strip * step[piece->along];
    return v;
}
