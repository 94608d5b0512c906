/* SPDX-License-Identifier: MIT */
/* Operands of a run; see gpu_operand.h. A panel that comes twice in a row stays where it is. */
#include "src/gpu_operand.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/split.h"
#include "src/gpu_kernels.h"

enum { ALIGNED = 1024 };              /* where the arena of a SPLIT kernel begins (plan.h) */

static int64_t round_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

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

CUdeviceptr gpb_run_table(const gpb_run *r, int which) { return r->tables + (CUdeviceptr)table_place(r->plan, which); }

int64_t gpb_run_tables(const gpb_call *call, const gpb_plan *plan)
{
    return call->a_array || call->b_array || call->c_array ? table_place(plan, TABLES) : 0;
}

static CUdeviceptr cut(CUdeviceptr *arena, int64_t bytes)
{
    CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)bytes;
    return bytes ? at : 0;
}

gpb_run gpb_run_begin(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    gpb_run r = { .lane = lane, .stream = lane->stream, .call = call, .plan = plan, .progress = progress, .element = gpb_call_element(call),
                  .a = { .base = call->a, .array = call->a_array, .stride = call->stride_a, .ld = call->lda,
                         .transposed = call->transa != 'N', .place = facts->a },
                  .b = { .base = call->b, .array = call->b_array, .stride = call->stride_b, .ld = call->ldb,
                         .transposed = call->transb != 'N', .place = facts->b },
                  .c = { .base = call->c, .array = (const void *const *)call->c_array, .stride = call->stride_c, .ld = call->ldc,
                         .place = facts->c } };
    CUdeviceptr arena = lane->arena;
    int64_t lost = plan->kernel->form == GPB_FORM_SPLIT && plan->bytes_parts ? (int64_t)(-arena % ALIGNED) : 0;      /* bytes_parts has room for that */
    arena += (CUdeviceptr)lost;
    r.a.panel = cut(&arena, plan->bytes_a), r.b.panel = cut(&arena, plan->bytes_b), r.c.panel = cut(&arena, plan->bytes_c);
    r.a.packed = cut(&arena, plan->bytes_pa), r.b.packed = cut(&arena, plan->bytes_pb), r.c.packed = cut(&arena, plan->bytes_pc);
    r.wide_a = cut(&arena, plan->bytes_wa), r.wide_b = cut(&arena, plan->bytes_wb);
    r.parts = cut(&arena, plan->bytes_parts ? plan->bytes_parts - lost : 0);
    r.tables = arena;
    return r;
}

/* ---- tables of addresses */

static CUresult send_addresses(gpb_run *r, const gpb_operand *x, const gpb_tile *t, int64_t shift, int which)
{
    const void **address = malloc((size_t)t->members * sizeof *address);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t l = 0; l < t->members; l++)
        address[l] = (const char *)gpb_member(x->base, x->array, x->stride, t->member + l, r->element) + (size_t)shift * r->element;
    CUresult result = gpb_gpu_send(r->lane, address, (size_t)t->members * sizeof *address, gpb_run_table(r, which));
    free(address);
    return result;
}

/* Member l of a view, as an address. `at` is member 0 at the panel's place: scattered ones lie as far from their own start. */
static CUdeviceptr member_at(const gpb_run *r, const gpb_operand *x, const gpb_view *view, const gpb_tile *t, int64_t l)
{
    if (view->scattered) return view->at + (CUdeviceptr)((uintptr_t)x->array[t->member + l] - (uintptr_t)x->array[t->member]);
    return view->at + (CUdeviceptr)(l * view->between) * r->element;
}

CUresult gpb_run_point(gpb_run *r, const gpb_tile *t, const gpb_view *a, const gpb_view *b, const gpb_view *c, gpb_gemm_args *args)
{
    args->rsa = args->csa = args->rsb = args->csb = 1;
    if (a) {
        args->a = (void *)(uintptr_t)a->at, args->rsa = a->rs, args->csa = a->cs, args->stride_a = a->between;
        args->b = (void *)(uintptr_t)b->at, args->rsb = b->rs, args->csb = b->cs, args->stride_b = b->between;
    }
    args->c = (void *)(uintptr_t)c->at, args->ldc = c->cs, args->stride_c = c->between;
    args->items = NULL;
    if (!c->scattered && !(a && (a->scattered || b->scattered))) return CUDA_SUCCESS;
    gpb_gemm_item *item = malloc((size_t)t->members * sizeof *item);
    if (!item) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t l = 0; l < t->members; l++)
        item[l] = (gpb_gemm_item){ a ? (void *)(uintptr_t)member_at(r, &r->a, a, t, l) : NULL,
                                   a ? (void *)(uintptr_t)member_at(r, &r->b, b, t, l) : NULL,
                                   (void *)(uintptr_t)member_at(r, &r->c, c, t, l) };
    args->items = (const gpb_gemm_item *)(uintptr_t)gpb_run_table(r, 0);
    CUresult result = gpb_gpu_send(r->lane, item, (size_t)t->members * sizeof *item, gpb_run_table(r, 0));
    free(item);
    return result;
}

/* The tile's first member where it is, `shift` elements in. */
static CUdeviceptr first_of(const gpb_run *r, const gpb_operand *x, const gpb_tile *t, int64_t shift)
{
    void *first = gpb_member(x->base, x->array, x->stride, t->member, r->element);
    return (CUdeviceptr)(uintptr_t)first + (CUdeviceptr)shift * r->element;
}

/* ---- A and B */

/* Where a panel of op(X) lies: rows x cols from (row, col). */
typedef struct place {
    int64_t row, rows, col, cols;
} place;

/* Brings a panel to where a kernel can read it: nothing to do in place, else up into the arena. */
static CUresult reach(gpb_run *r, gpb_operand *x, int which, const gpb_tile *t, const place *at)
{
    CUresult result = CUDA_SUCCESS;
    /* The panel as it is stored. */
    int64_t row = x->transposed ? at->col : at->row, col = x->transposed ? at->row : at->col, ld = x->ld, shift = row + col * ld;
    gpb_panel panel = { .rows = x->transposed ? at->cols : at->rows, .cols = x->transposed ? at->rows : at->cols, .ld = ld,
                        .element = r->element, .place = x->place, .uplo = 'G' };
    x->raw.scattered = false;
    if (x->place == GPB_PLACE_DEVICE) {
        x->raw.at = first_of(r, x, t, shift);
        x->raw.between = x->stride;
        x->raw.scattered = x->array && t->members > 1;
        if (x->raw.scattered && x->packed) result = send_addresses(r, x, t, shift, which);
    } else {
        ld = panel.rows;
        x->raw.at = x->panel;
        x->raw.between = panel.rows * panel.cols;
        for (int64_t l = 0; l < t->members && !result; l++) {
            const char *from = gpb_member(x->base, x->array, x->stride, t->member + l, r->element);
            result = gpb_gpu_upload(r->lane, &panel, from + (size_t)shift * r->element,
                                    x->panel + (CUdeviceptr)(l * x->raw.between) * r->element);
        }
        r->progress->bytes_up += panel.rows * panel.cols * t->members * (int64_t)r->element;
    }
    x->raw.rs = x->transposed ? ld : 1;
    x->raw.cs = x->transposed ? 1 : ld;
    return result;
}

/* Zero-padded to whole tiles, by gpb_spack. */
static CUresult pack(gpb_run *r, gpb_operand *x, int which, const gpb_tile *t, const place *at, int64_t tile_rows, int64_t tile_cols)
{
    gpb_pack_args args = { .src = (void *)(uintptr_t)x->raw.at, .rs = x->raw.rs, .cs = x->raw.cs, .rows = at->rows, .cols = at->cols,
                           .dst = (void *)(uintptr_t)x->packed, .rows_padded = round_up(at->rows, tile_rows),
                           .cols_padded = round_up(at->cols, tile_cols), .batch = t->members, .stride_src = x->raw.between };
    if (x->raw.scattered) args.src_items = (const void *const *)(uintptr_t)gpb_run_table(r, which);
    args.ld = args.rows_padded;
    args.stride_dst = args.ld * args.cols_padded;
    x->given = (gpb_view){ .at = x->packed, .rs = 1, .cs = args.ld, .between = args.stride_dst };
    return gpb_gpu_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = GPB_FUNCTION_PACK, .blocks = GPB_TILES(args.rows_padded, args.cols_padded, GPB_PACK_TILE, GPB_PACK_TILE),
        .members = t->members, .args = &args });
}

/* A number that no other launch of gpb_ssplit in this process has, nor stale memory: multiples of a large odd number, 64 bits. */
static uint64_t next_epoch(void)
{
    static _Atomic uint64_t last;
    uint64_t epoch;
    do epoch = atomic_fetch_add_explicit(&last, 0x9e3779b97f4a7c15, memory_order_relaxed) + 0x9e3779b97f4a7c15;
    while (epoch == 0);
    return epoch;
}

/* X = op(A), or op(B) transposed, as gpb_ssplit is told of it. */
static gpb_split_operand to_split(const gpb_run *r, bool is_a, const gpb_tile *t, CUdeviceptr to, uint64_t epoch)
{
    const gpb_view *raw = is_a ? &r->a.raw : &r->b.raw;
    gpb_split_operand x = { .src = (void *)(uintptr_t)raw->at, .rs = is_a ? raw->rs : raw->cs, .cs = is_a ? raw->cs : raw->rs,
                            .rows = is_a ? t->rows : t->cols, .stride = raw->between, .dst = (void *)(uintptr_t)to, .epoch = epoch };
    if (raw->scattered) x.src_items = (const void *const *)(uintptr_t)gpb_run_table(r, is_a ? 1 : 2);
    return x;
}

/* Slices as a SPLIT kernel is given them. */
static gpb_view slices_at(CUdeviceptr at, int64_t rows, int64_t k, int slices)
{
    return (gpb_view){ .at = at, .rs = 1, .cs = 1, .between = gpb_split_bytes(rows, k, slices) / (int64_t)sizeof(float) };
}

static CUresult launch_split(gpb_run *r, gpb_split_args *args)
{
    int sharers;
    const int which = gpb_function_split(r->lane->device, args->k, args->slices, &sharers);
    const int64_t strips = GPB_SPLIT_STRIPS(args->a.rows) + GPB_SPLIT_STRIPS(args->b.rows);
    args->counters = (uint32_t *)(uintptr_t)r->parts;
    args->notice = r->lane->notice;
    return gpb_gpu_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = which, .blocks = (strips ? strips : 1) * sharers, .members = args->batch, .args = args });
}

/* Into slices: those of the two that are not there already. */
static CUresult split(gpb_run *r, const gpb_tile *t, int64_t k1, bool new_a, bool new_b)
{
    const uint64_t epoch = next_epoch();
    gpb_split_args args = { .k = k1, .batch = t->members, .slices = gpb_plan_slices(r->plan->kernel) };
    if (new_a) {
        args.a = to_split(r, true, t, r->a.packed, epoch);
        r->a.given = slices_at(r->a.packed, t->rows, k1, args.slices), r->a.epoch = epoch;
    }
    if (new_b) {
        args.b = to_split(r, false, t, r->b.packed, epoch);
        r->b.given = slices_at(r->b.packed, t->cols, k1, args.slices), r->b.epoch = epoch;
    }
    return launch_split(r, &args);
}

CUresult gpb_run_bring_wide(gpb_run *r, const gpb_tile *t, const gpb_gemm_args *of, gpb_view *a, gpb_view *b)
{
    const uint64_t epoch = next_epoch();
    gpb_split_args args = { .k = of->k, .batch = t->members, .slices = gpb_plan_slices(r->plan->wide),
                            .if_a = of->guard_a + gpb_split_guards(t->rows), .if_b = of->guard_b + gpb_split_guards(t->cols),
                            .stride_if_a = of->stride_guard_a, .stride_if_b = of->stride_guard_b, .epoch_if_a = of->epoch_a,
                            .epoch_if_b = of->epoch_b };
    args.a = to_split(r, true, t, r->wide_a, epoch);
    args.b = to_split(r, false, t, r->wide_b, epoch);
    *a = slices_at(r->wide_a, t->rows, of->k, args.slices);
    *b = slices_at(r->wide_b, t->cols, of->k, args.slices);
    return launch_split(r, &args);
}

CUresult gpb_run_bring_ab(gpb_run *r, const gpb_tile *t, int64_t p, int64_t k1)
{
    const gpb_kernel *kernel = r->plan->kernel;
    gpb_operand *const operands[] = { &r->a, &r->b };
    const place places[] = { { t->i, t->rows, p, k1 }, { p, k1, t->j, t->cols } };
    const int64_t tile_rows[] = { kernel->bm, kernel->bk }, tile_cols[] = { kernel->bk, kernel->bn };
    bool is_new[2];
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 2 && !result; i++) {
        gpb_operand *x = operands[i];
        const place *at = &places[i];
        const int64_t now[4] = { t->member, at->row, at->col, at->rows };
        is_new[i] = !x->had[3] || memcmp(x->had, now, sizeof now) != 0;
        if (!is_new[i]) continue;
        x->had[3] = 0;
        result = reach(r, x, i + 1, t, at);
        x->given = x->raw;
        if (!result && x->packed && kernel->form != GPB_FORM_SPLIT) result = pack(r, x, i + 1, t, at, tile_rows[i], tile_cols[i]);
    }
    if (!result && kernel->form == GPB_FORM_SPLIT) result = split(r, t, k1, is_new[0], is_new[1]);
    for (int i = 0; i < 2 && !result; i++) {
        operands[i]->had[0] = t->member, operands[i]->had[1] = places[i].row;
        operands[i]->had[2] = places[i].col, operands[i]->had[3] = places[i].rows;
    }
    return result;
}

/* ---- C */

CUresult gpb_run_bring_c(gpb_run *r, const gpb_tile *t, gpb_panel *panel)
{
    gpb_operand *c = &r->c;
    const gpb_kernel *kernel = r->plan->kernel;
    CUresult result = CUDA_SUCCESS;
    int64_t shift = t->i + t->j * c->ld;
    *panel = (gpb_panel){ .rows = t->rows, .cols = t->cols, .ld = c->ld, .element = r->element, .place = c->place, .uplo = r->call->uplo,
                          .row0 = t->i, .col0 = t->j };
    if (c->place == GPB_PLACE_DEVICE) {
        c->raw = (gpb_view){ .at = first_of(r, c, t, shift), .rs = 1, .cs = c->ld, .between = c->stride,
                             .scattered = c->array && t->members > 1 };
        if (c->raw.scattered && c->packed) result = send_addresses(r, c, t, shift, 3);
    } else {
        c->raw = (gpb_view){ .at = c->panel, .rs = 1, .cs = t->rows, .between = t->rows * t->cols };
        for (int64_t l = 0; l < t->members && r->call->beta != 0 && !result; l++) {
            const char *from = gpb_member(c->base, c->array, c->stride, t->member + l, r->element);
            result = gpb_gpu_upload(r->lane, panel, from + (size_t)shift * r->element,
                                    c->panel + (CUdeviceptr)(l * c->raw.between) * r->element);
        }
        if (r->call->beta != 0) r->progress->bytes_up += t->rows * t->cols * t->members * (int64_t)r->element;
    }
    c->given = c->raw;
    if (c->packed) {
        int64_t ld = round_up(t->rows, kernel->bm);
        c->given = (gpb_view){ .at = c->packed, .rs = 1, .cs = ld, .between = ld * round_up(t->cols, kernel->bn) };
    }
    return result;
}
