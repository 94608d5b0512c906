/* SPDX-License-Identifier: MIT */
/* Operands of a run; see operand.h. */
#include "src/run/operand.h"

#include "dispatch/numbers.h"
#include "kernels/sliced.h"
#include "kernels/solve_args.h"
#include "src/gpu/kernels.h"
#include "src/run/address_table.h"
#include "src/run/slice.h"

/* ---- memory */

/* Array members that lie equally far apart are a strided batch, so no table of addresses need be sent. */
static void straighten(gpb_matrix *x, const gpb_where *where)
{
    if (!x->array || where->place != GPB_PLACE_DEVICE || where->member_stride < 0) return;
    x->base = x->array[0];
    x->stride = where->member_stride;
    x->array = NULL;
}

static CUdeviceptr carve(CUdeviceptr *arena, int64_t bytes)
{
    CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)bytes;
    return bytes ? at : 0;
}

/* Of what A's or B's panels have in the arena, this product's own part. */
static int64_t own_half(const gpb_call *call, int64_t bytes) { return bytes / gpb_call_products(call); }

/* The operand with its buffers, and the distances between buffers and between strips. */
static gpb_run_operand operand(const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts,
                               enum gpb_operand which)
{
    const gpb_panels *p = &plan->panel[which];
    const int64_t bytes = which == GPB_C ? p->bytes : own_half(call, p->bytes);
    gpb_run_operand x = { .which = which, .stored = call->x[which], .place = facts->where[which].place,
                          .buffers = p->buffers, .buffer_bytes = bytes / p->buffers,
                          .unsliced = GPB_OPERAND_NO_STRIP };
    if (which != GPB_C) {
        x.k_down = gpb_call_k_down(call, which);
        if (plan->mirrors && gpb_call_mirrors(call, which))
            x.ld = gpb_plan_mirrored_ld(call->k, (int64_t)gpb_call_element(call));
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
    gpb_run r = { .lane = lane, .stream = lane->stream, .call = call, .plan = plan,
                  .progress = &job->progress, .element = gpb_call_element(call) };
    CUdeviceptr arena = lane->arena.at;
    const bool aligned = gpb_kernel_table_guarded(plan->kernel) && plan->bytes_parts;
    /* There is room for that in bytes_parts. */
    const int64_t lost = aligned ? (int64_t)(-arena % GPB_PLAN_ALIGNED) : 0;
    arena += (CUdeviceptr)lost;
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x] = operand(call, plan, job->facts, x);
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].panel = carve(&arena, p[x].bytes);
    if (plan->one_matrix) {
        /* B itself lies in the other half, if there is one. */
        const int64_t half = own_half(call, p[GPB_A].bytes);
        r.x[GPB_B].panel = r.x[GPB_A].panel + (CUdeviceptr)(p[GPB_A].bytes - half);
        r.x[GPB_B].buffers = r.x[GPB_A].buffers;
        r.x[GPB_B].buffer_bytes = r.x[GPB_A].buffer_bytes;
    }
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].packed = carve(&arena, p[x].bytes_packed);
    if (plan->one_packed) r.x[GPB_B].packed = r.x[GPB_A].packed;
    for (int x = 0; x < GPB_OPERANDS; x++) r.x[x].wide = carve(&arena, p[x].bytes_wide);
    r.parts = carve(&arena, plan->bytes_parts ? plan->bytes_parts - lost : 0);
    r.tables = arena;
    return r;
}

gpb_run gpb_operand_second(const gpb_run *first, const gpb_call *call)
{
    const gpb_panels *p = first->plan->panel;
    gpb_run r = *first;
    r.call = call;
    r.adds = true;
    for (int x = 0; x < GPB_C; x++) {
        r.x[x].stored = call->x[x];
        r.x[x].place = first->x[!x].place;
        r.x[x].panel += (CUdeviceptr)(p[x].bytes / 2);
        if (r.x[x].packed) r.x[x].packed += (CUdeviceptr)(p[x].bytes_packed / 2);
    }
    if (r.plan->one_matrix) r.x[GPB_B].panel = first->x[GPB_A].panel;
    return r;
}

/* ---- A and B */

bool gpb_operand_comes(const gpb_run *r, const gpb_move *move)
{
    return move->reads && r->x[move->operand].place != GPB_PLACE_DEVICE
           && !(r->plan->one_matrix && move->operand != gpb_schedule_leader(r->call, r->plan));
}

gpb_stored gpb_operand_stored(const gpb_run *r, const gpb_move *move)
{
    const gpb_run_operand *x = &r->x[move->operand];
    const int64_t from = move->strip * x->strip, at = from + move->block.at[x->which];
    const int64_t size = min(x->strip, move->block.size[x->which] - from);
    const bool lower = x->stored.uplo == 'L';
    if (x->ld)
        return (gpb_stored){ .row = at, .rows = lower ? r->call->k - at : size,
                             .col = at, .cols = lower ? size : r->call->k - at };
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
    const CUdeviceptr first = buffer_of(x, move->panel[x->which]);
    if (x->ld) return first + (CUdeviceptr)(move->strip * x->strip * (x->ld + 1)) * r->element;
    return first + (CUdeviceptr)(move->strip * x->strip_bytes);
}

CUdeviceptr gpb_operand_block(const gpb_run *r, const gpb_move *move)
{
    return buffer_of(&r->x[GPB_C], move->panel[GPB_C]);
}

/* From a column to the next, if all of the operand is on the device or is made there; 0: its strips lie one
   after the other, without gaps. */
static int64_t ld_of(const gpb_run_operand *x)
{
    return x->place == GPB_PLACE_DEVICE ? x->stored.ld : x->ld;
}

/* Describes the panel as it came, from its first strip on. */
static CUresult view(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_region *t = &move->block;
    CUresult result = CUDA_SUCCESS;
    const int64_t ld = ld_of(x);
    x->source_strip = !ld ? x->strip_bytes / (int64_t)r->element : x->k_down ? x->strip * ld : x->strip;
    if (x->place != GPB_PLACE_DEVICE) {
        x->source = (gpb_view){ .at = buffer_of(x, move->panel[x->which]) };
        return result;
    }
    gpb_move first = *move;
    first.strip = 0;
    const gpb_stored at = gpb_operand_stored(r, &first);
    const int64_t shift = at.row + at.col * x->stored.ld;
    const void *member = gpb_matrix_member(&x->stored, t->member, r->element);
    x->source = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element,
                            .scattered = x->stored.array && t->members > 1 };
    if (x->source.scattered && x->packed) result = gpb_address_send(r, x, t);
    return result;
}

/* rows x depth elements of op(A) or of op(B) transposed, from strip number `strip` on, with members as far
   apart as in the launch set. */
static gpb_view source_view(const gpb_run *r, const gpb_run_operand *x, const gpb_launch_set *piece)
{
    const int64_t size = piece->tile.size[x->which];
    const int64_t ld = ld_of(x) ? ld_of(x) : x->k_down ? x->depth : size;
    gpb_view v = x->source;
    v.at += (CUdeviceptr)(piece->strip[x->which] * x->source_strip) * r->element;
    v.rs = x->k_down ? ld : 1;
    v.cs = x->k_down ? 1 : ld;
    v.member_stride = x->place == GPB_PLACE_DEVICE ? x->stored.stride : size * x->depth;
    if (piece->count > 1) v.member_stride = piece->along == x->which ? x->source_strip : 0;
    return v;
}

/* Packs a panel of one strip with gpb_spack, zero-padded to whole tiles. The kernel sees op(A) or op(B). */
static CUresult pack(gpb_run *r, gpb_run_operand *x, const gpb_move *move)
{
    const gpb_kernel *kernel = r->plan->kernel;
    const gpb_region *t = &move->block;
    const gpb_view raw = source_view(r, x, &(gpb_launch_set){ .tile = *t, .count = 1 });
    const int64_t size[] = { t->size[x->which], move->depth },
                  edge[] = { gpb_kernel_table_edge(kernel, x->which), kernel->bk };
    const int64_t step[] = { raw.rs, raw.cs };
    const int down = x->which, across = !down;      /* indices of the two: k goes down in op(B) */
    gpb_pack_args args = { .src = gpb_pointer(raw.at), .rs = step[down], .cs = step[across],
                           .rows = size[down], .cols = size[across], .dst = gpb_pointer(x->packed),
                           .batch = t->members, .stride_src = raw.member_stride };
    args.rows_padded = round_up(args.rows, edge[down]);
    args.cols_padded = round_up(args.cols, edge[across]);
    if (raw.scattered) args.src_items = gpb_pointer(gpb_address_table(r, x->which));
    args.ld = args.rows_padded;
    args.stride_dst = args.ld * args.cols_padded;
    const int64_t packed_step[] = { 1, args.ld };
    x->ready = (gpb_view){ .at = x->packed, .rs = packed_step[down], .cs = packed_step[across],
                           .member_stride = args.stride_dst };
    return gpb_kernels_launch(
        r->lane->device, r->stream,
        &(gpb_launch){ .which = gpb_kernels_pass(GPB_PASS_PACK, kernel->type),
                       .blocks = GPB_TILES(args.rows_padded, args.cols_padded, GPB_PACK_TILE, GPB_PACK_TILE),
                       .members = t->members,
                       .args = &args });
}

CUresult gpb_operand_mirror(const gpb_run *r, const gpb_matrix *triangle, CUdeviceptr to, int64_t ldto,
                            int64_t n, int64_t first)
{
    gpb_mirror_args args = { .a = triangle->base, .lda = triangle->ld, .to = gpb_pointer(to),
                             .ldto = ldto, .n = n, .first = first, .lower = triangle->uplo == 'L',
                             .hermitian = triangle->structure == GPB_HERMITIAN };
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = gpb_kernels_pass(GPB_PASS_mirror, r->call->type), .blocks = GPB_MIRROR_BLOCKS(n, first),
        .members = 1, .args = &args });
}

/* Mirrors the strip where it is. The launch uses no element whose row or column lies before the strip, and
   none of which both lie behind it. So strips before it may be in use, and those behind it may come. */
static CUresult mirror(const gpb_run *r, const gpb_run_operand *x, const gpb_move *move)
{
    const gpb_stored s = gpb_operand_stored(r, move);
    const CUdeviceptr at = gpb_operand_strip(r, move);
    gpb_matrix triangle = x->stored;
    triangle.base = gpb_pointer(at);
    triangle.ld = x->ld;
    return gpb_operand_mirror(r, &triangle, at, x->ld, max(s.rows, s.cols), min(s.rows, s.cols));
}

/* Mirrors, packs or slices the strip. A strip that came over the link is sliced at once. If both operands are
   in place, the first one waits, so that one launch slices both. If B's slices are A's, A alone is sliced. */
CUresult gpb_operand_prepare(gpb_run *r, const gpb_move *move)
{
    gpb_run_operand *x = &r->x[move->operand];
    const bool slices = gpb_kernel_table_guarded(r->plan->kernel),
               made = r->plan->one_packed && x->which == GPB_B;
    if (x->at_panel != move->panel[x->which]) {
        x->at_panel = move->panel[x->which];
        /* The last panel may have left a strip that unlocked nothing (a triangle). */
        x->unsliced = GPB_OPERAND_NO_STRIP;
        x->depth = move->depth;
        x->epoch = made ? r->x[GPB_A].epoch : slices ? gpb_slice_epoch() : 0;
        x->ready_strip = slices
                         ? gpb_plan_sliced_bytes(r->plan->kernel, x->which, x->strip, move->depth) : 0;
        CUresult result = view(r, x, move);
        if (result) return result;
    }
    if (x->ld) {
        CUresult result = mirror(r, x, move);
        if (result) return result;
    }
    if (slices) {
        /* An earlier strip unlocked nothing. */
        CUresult result = x->unsliced == GPB_OPERAND_NO_STRIP ? CUDA_SUCCESS : gpb_slice_strips(r, move);
        if (result) return result;
        x->unsliced = made ? GPB_OPERAND_NO_STRIP : move->strip;
        const bool alone = r->x[GPB_A].unsliced == GPB_OPERAND_NO_STRIP
                           || r->x[GPB_B].unsliced == GPB_OPERAND_NO_STRIP;
        return x->place == GPB_PLACE_DEVICE && alone && move->tile.rows == 0 ? CUDA_SUCCESS
                                                                             : gpb_slice_strips(r, move);
    }
    return x->packed ? pack(r, x, move) : CUDA_SUCCESS;
}

gpb_view gpb_operand_view(const gpb_run *r, enum gpb_operand which, bool ready, const gpb_launch_set *piece)
{
    const gpb_run_operand *x = &r->x[which];
    if (!ready || !x->packed) return source_view(r, x, piece);
    if (!gpb_kernel_table_guarded(r->plan->kernel)) return x->ready;
    const CUdeviceptr at = x->packed + (CUdeviceptr)(piece->strip[which] * x->ready_strip);
    gpb_view v = gpb_slice_view(r->plan->kernel, which, at, piece->tile.size[which], x->depth);
    if (piece->count > 1)
        v.member_stride = piece->along == which ? x->ready_strip / GPB_SLICE_UNIT : 0;
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
        c->source = (gpb_view){ .at = (CUdeviceptr)(uintptr_t)member + (CUdeviceptr)shift * r->element,
                                .rs = 1, .cs = c->stored.ld,
                             .member_stride = c->stored.stride,
                             .scattered = c->stored.array && t->members > 1 };
        if (c->source.scattered && c->packed) result = gpb_address_send(r, c, t);
    } else {
        c->source = (gpb_view){ .at = gpb_operand_block(r, move), .rs = 1, .cs = t->rows,
                                .member_stride = t->rows * t->cols };
    }
    c->ready = c->source;
    if (c->packed) {
        int64_t ld = round_up(t->rows, kernel->bm);
        c->ready = (gpb_view){ .at = c->packed, .rs = 1, .cs = ld,
                               .member_stride = ld * round_up(t->cols, kernel->bn) };
    }
    return result;
}

gpb_view gpb_operand_view_c(const gpb_run *r, const gpb_move *move, const gpb_launch_set *piece)
{
    gpb_view v = r->x[GPB_C].ready;
    v.at += (CUdeviceptr)(piece->tile.i - move->block.i + (piece->tile.j - move->block.j) * v.cs)
            * r->element;
    const int64_t step[] = { 1, v.cs };
    if (piece->count > 1) v.member_stride = r->x[piece->along].strip * step[piece->along];
    return v;
}
