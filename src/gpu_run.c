/* SPDX-License-Identifier: MIT */
/* Carries out a plan on one lane, whose context is current. For each tile of C: C up if beta wants it, then for each panel of k the panels
   of A and B up (unless the same panel is still there from the step before), packed if the kernel wants that, and the kernel; then the
   tile home. Everything goes down one stream, so the order of enqueueing is the order of execution. */
#include "src/gpu_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/gemm_args.h"
#include "src/gpu_copy.h"
#include "src/log.h"

/* One operand of the run: where the caller has it, and where kernels see it. */
typedef struct operand {
    const void *base;                 /* the caller's */
    const void *const *array;
    int64_t stride, ld;
    enum gpb_place place;             /* DEVICE: kernels see it where it is */
    bool transposed;
    CUdeviceptr panel, packed;        /* in the arena */
    int64_t had[4];                   /* member, row, column and rows of the panel that is in the arena; had[3] = 0: none */
    /* what the kernel is given */
    CUdeviceptr at;
    int64_t rs, cs, between;          /* element strides of op(X), and between members */
    CUdeviceptr items;                /* in place and scattered: device array of addresses, else 0 */
} operand;

typedef struct run {
    const gpb_driver *driver;
    gpb_lane *lane;
    const gpb_call *call;
    const gpb_plan *plan;
    gpb_progress *progress;
    operand a, b, c;
    CUdeviceptr tables;               /* of gpb_gemm_item, then of addresses for the packs of A, B, C */
    size_t element;
} run;

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t parts(int64_t size, int64_t panel) { return (size + panel - 1) / panel; }
static int64_t round_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/* ---- tiles */

int64_t gpb_gpu_tiles(const gpb_call *call, const gpb_plan *plan)
{
    return parts(call->batch, plan->group) * parts(call->m, plan->mc) * parts(call->n, plan->nc);
}

/* Down one column block and up the next, so that a panel of A is used twice in a row at each turn. */
gpb_tile gpb_gpu_tile(const gpb_call *call, const gpb_plan *plan, int64_t number)
{
    int64_t rows = parts(call->m, plan->mc), cols = parts(call->n, plan->nc);
    int64_t group = number / (rows * cols), col = number / rows % cols, row = number % rows;
    if (col % 2) row = rows - 1 - row;
    gpb_tile tile = { .member = group * plan->group, .i = row * plan->mc, .j = col * plan->nc };
    tile.members = least(plan->group, call->batch - tile.member);
    tile.rows = least(plan->mc, call->m - tile.i);
    tile.cols = least(plan->nc, call->n - tile.j);
    return tile;
}

int64_t gpb_gpu_panel(const gpb_call *call, const gpb_plan *plan, int64_t tile, int64_t step)
{
    return call->k ? (tile % 2 ? parts(call->k, plan->kc) - 1 - step : step) * plan->kc : 0;
}

bool gpb_gpu_tile_idle(const gpb_call *call, const gpb_tile *tile)
{
    return (call->uplo == 'U' && tile->i >= tile->j + tile->cols) || (call->uplo == 'L' && tile->j >= tile->i + tile->rows);
}

/* ---- memory */

enum { TABLES = 4 };
static const int64_t table_bytes[TABLES] = { sizeof(gpb_gemm_item), sizeof(void *), sizeof(void *), sizeof(void *) };

static int64_t all_tables(const gpb_call *call, const gpb_plan *plan)
{
    if (!call->a_array && !call->b_array && !call->c_array) return 0;
    int64_t bytes = 0;
    for (int i = 0; i < TABLES; i++) bytes += round_up(table_bytes[i] * plan->group, 256);
    return bytes;
}

int64_t gpb_gpu_panel_bytes(const gpb_plan *plan)
{
    return plan->bytes_a + plan->bytes_b + plan->bytes_c + plan->bytes_pa + plan->bytes_pb + plan->bytes_pc;
}

int64_t gpb_gpu_run_bytes(const gpb_call *call, const gpb_plan *plan)
{
    return gpb_gpu_panel_bytes(plan) + all_tables(call, plan);
}

static CUdeviceptr cut(CUdeviceptr *arena, int64_t bytes)
{
    CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)bytes;
    return bytes ? at : 0;
}

/* Table `which` (0: triples for the kernel; 1, 2, 3: addresses of A, B, C for the packs). */
static CUdeviceptr table(const run *r, int which)
{
    CUdeviceptr at = r->tables;
    for (int i = 0; i < which; i++) at += (CUdeviceptr)round_up(table_bytes[i] * r->plan->group, 256);
    return at;
}

/* ---- launches */

static CUresult launch(run *r, enum gpb_image image, const char *symbol, int64_t blocks, int64_t members, int threads, int smem, void *args)
{
    CUfunction function;
    CUresult result = gpb_gpu_function(r->lane->device, image, symbol, &function);
    if (!result && smem > 48 * 1024)
        result = r->driver->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem);
    void *params[] = { args };
    if (!result)
        result = r->driver->cuLaunchKernel(function, (unsigned)blocks, 1, (unsigned)GPB_GRID_Z(members), (unsigned)threads, 1, 1,
                                           (unsigned)smem, r->lane->stream, params, NULL);
    return result;
}

static CUresult send_addresses(run *r, const operand *x, const gpb_tile *t, int64_t shift, int which)
{
    const void **address = malloc((size_t)t->members * sizeof *address);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t l = 0; l < t->members; l++)
        address[l] = (const char *)gpb_member(x->base, x->array, x->stride, t->member + l, r->element) + (size_t)shift * r->element;
    CUresult result = gpb_gpu_send(r->lane, address, (size_t)t->members * sizeof *address, table(r, which));
    free(address);
    return result;
}

/* Brings rows x cols of op(X) from (row, col) to where the kernel can read it: straight in place, up into the arena, or packed. */
static CUresult bring(run *r, operand *x, int which, const gpb_tile *t, int64_t row, int64_t rows, int64_t col, int64_t cols,
                      int64_t tile_rows, int64_t tile_cols)
{
    CUresult result = CUDA_SUCCESS;
    const int64_t now[4] = { t->member, row, col, rows };
    if (x->had[3] && memcmp(x->had, now, sizeof now) == 0) return result;
    x->had[3] = 0;
    /* The panel as it is stored. */
    int64_t stored_row = x->transposed ? col : row, stored_col = x->transposed ? row : col;
    gpb_panel panel = { .rows = x->transposed ? cols : rows, .cols = x->transposed ? rows : cols, .ld = x->ld, .element = r->element,
                        .place = x->place, .uplo = 'G' };
    int64_t shift = stored_row + stored_col * x->ld, ld = x->ld;
    x->items = 0;
    if (x->place == GPB_PLACE_DEVICE) {
        x->at = (CUdeviceptr)(uintptr_t)gpb_member(x->base, x->array, x->stride, t->member, r->element) + (CUdeviceptr)shift * r->element;
        x->between = x->stride;
        if (x->array && t->members > 1) {
            x->items = table(r, which);
            if (x->packed) result = send_addresses(r, x, t, shift, which);
        }
    } else {
        ld = panel.rows;
        x->at = x->panel;
        x->between = panel.rows * panel.cols;
        for (int64_t l = 0; l < t->members && !result; l++) {
            const char *from = gpb_member(x->base, x->array, x->stride, t->member + l, r->element);
            result = gpb_gpu_upload(r->lane, &panel, from + (size_t)shift * r->element,
                                    x->panel + (CUdeviceptr)(l * x->between) * r->element);
        }
        r->progress->bytes_up += panel.rows * panel.cols * t->members * (int64_t)r->element;
    }
    x->rs = x->transposed ? ld : 1;
    x->cs = x->transposed ? 1 : ld;
    if (!result && x->packed) {
        gpb_pack_args pack = { .src = (void *)(uintptr_t)x->at, .rs = x->rs, .cs = x->cs, .rows = rows, .cols = cols,
                               .dst = (void *)(uintptr_t)x->packed, .rows_padded = round_up(rows, tile_rows),
                               .cols_padded = round_up(cols, tile_cols), .batch = t->members, .stride_src = x->between,
                               .src_items = (const void *const *)(uintptr_t)x->items };
        pack.ld = pack.rows_padded;
        pack.stride_dst = pack.ld * pack.cols_padded;
        result = launch(r, GPB_PACK_IMAGE, GPB_STR(GPB_PACK_SYMBOL(s)),
                        GPB_TILES(pack.rows_padded, pack.cols_padded, GPB_PACK_TILE, GPB_PACK_TILE), t->members, GPB_PACK_THREADS, 0, &pack);
        x->at = x->packed;
        x->rs = 1;
        x->cs = pack.ld;
        x->between = pack.stride_dst;
        x->items = 0;
    }
    if (!result) memcpy(x->had, now, sizeof now);
    return result;
}

/* The kernel's triples, where an operand is scattered over the device. */
static CUresult send_items(run *r, const gpb_gemm_args *args, const gpb_tile *t)
{
    gpb_gemm_item *item = malloc((size_t)t->members * sizeof *item);
    if (!item) return CUDA_ERROR_OUT_OF_MEMORY;
    const operand *operands[] = { &r->a, &r->b, &r->c };
    const void *const at[] = { args->a, args->b, args->c };
    for (int64_t l = 0; l < t->members; l++) {
        const char *address[3];
        for (int i = 0; i < 3; i++) {
            const operand *x = operands[i];
            address[i] = (const char *)at[i] + (size_t)(l * x->between) * r->element;
            if (x->items)       /* at[] is member 0 of this tile at the panel's place: the others lie as far from their own start */
                address[i] = (const char *)at[i] + ((uintptr_t)x->array[t->member + l] - (uintptr_t)x->array[t->member]);
        }
        item[l] = (gpb_gemm_item){ address[0], address[1], (void *)(uintptr_t)address[2] };
    }
    CUresult result = gpb_gpu_send(r->lane, item, (size_t)t->members * sizeof *item, table(r, 0));
    free(item);
    return result;
}

/* Sets c up for the tile: in place, or its buffer, filled if beta != 0. */
static CUresult bring_c(run *r, const gpb_tile *t, gpb_panel *panel)
{
    operand *c = &r->c;
    CUresult result = CUDA_SUCCESS;
    int64_t shift = t->i + t->j * c->ld;
    *panel = (gpb_panel){ .rows = t->rows, .cols = t->cols, .ld = c->ld, .element = r->element, .place = c->place, .uplo = r->call->uplo,
                          .row0 = t->i, .col0 = t->j };
    c->items = 0;
    if (c->place == GPB_PLACE_DEVICE) {
        c->at = (CUdeviceptr)(uintptr_t)gpb_member(c->base, c->array, c->stride, t->member, r->element) + (CUdeviceptr)shift * r->element;
        c->cs = c->ld;
        c->between = c->stride;
        if (c->array && t->members > 1) {
            c->items = table(r, 3);
            if (c->packed) result = send_addresses(r, c, t, shift, 3);
        }
        return result;
    }
    c->at = c->panel;
    c->cs = t->rows;
    c->between = t->rows * t->cols;
    if (r->call->beta == 0) return result;
    for (int64_t l = 0; l < t->members && !result; l++) {
        const char *from = gpb_member(c->base, c->array, c->stride, t->member + l, r->element);
        result = gpb_gpu_upload(r->lane, panel, from + (size_t)shift * r->element, c->at + (CUdeviceptr)(l * c->between) * r->element);
    }
    r->progress->bytes_up += t->rows * t->cols * t->members * (int64_t)r->element;
    return result;
}

/* One launch of the kernel: beta times the tile of C plus panels k1 deep that start at p; with pack_c into the workspace and from there
   home. */
static CUresult multiply(run *r, const gpb_tile *t, int64_t p, int64_t k1, double beta)
{
    const gpb_kernel *kernel = r->plan->kernel;
    const gpb_call *call = r->call;
    CUresult result = CUDA_SUCCESS;
    gpb_gemm_args args = { .m = t->rows, .n = t->cols, .k = k1, .alpha = call->alpha, .beta = beta, .batch = t->members,
                           .rsa = 1, .csa = 1, .rsb = 1, .csb = 1 };
    if (k1) {
        result = bring(r, &r->a, 1, t, t->i, t->rows, p, k1, kernel->bm, kernel->bk);
        if (!result) result = bring(r, &r->b, 2, t, p, k1, t->j, t->cols, kernel->bk, kernel->bn);
        args.a = (void *)(uintptr_t)r->a.at, args.rsa = r->a.rs, args.csa = r->a.cs, args.stride_a = r->a.between;
        args.b = (void *)(uintptr_t)r->b.at, args.rsb = r->b.rs, args.csb = r->b.cs, args.stride_b = r->b.between;
    }
    const operand home = r->c;
    if (home.packed) {
        r->c.at = home.packed;
        r->c.cs = round_up(t->rows, kernel->bm);
        r->c.between = r->c.cs * round_up(t->cols, kernel->bn);
        r->c.items = 0;
        args.beta = 0;
    }
    args.c = (void *)(uintptr_t)r->c.at, args.ldc = r->c.cs, args.stride_c = r->c.between;
    if (!result && ((k1 && (r->a.items || r->b.items)) || r->c.items)) {
        args.items = (const gpb_gemm_item *)(uintptr_t)table(r, 0);
        result = send_items(r, &args, t);
    }
    if (!result)
        result = launch(r, kernel->image, kernel->symbol, GPB_TILES(t->rows, t->cols, kernel->bm, kernel->bn), t->members, kernel->threads,
                        kernel->smem, &args);
    if (!result && home.packed) {
        gpb_unpack_args unpack = { .m = t->rows, .n = t->cols, .w = args.c, .ldw = args.ldc, .c = (void *)(uintptr_t)home.at,
                                   .ldc = home.cs, .beta = beta, .row0 = t->i, .col0 = t->j, .batch = t->members, .stride_w = args.stride_c,
                                   .stride_c = home.between, .c_items = (void *const *)(uintptr_t)home.items, .uplo = call->uplo };
        result = launch(r, GPB_PACK_IMAGE, GPB_STR(GPB_UNPACK_SYMBOL(s)),
                        GPB_TILES(t->rows, t->cols, GPB_PACK_TILE, GPB_PACK_TILE), t->members, GPB_PACK_THREADS, 0, &unpack);
    }
    r->c = home;
    return result;
}

static CUresult send_home(run *r, const gpb_tile *t, const gpb_panel *panel)
{
    CUresult result = CUDA_SUCCESS;
    int64_t shift = t->i + t->j * r->c.ld;
    for (int64_t l = 0; l < t->members && !result; l++) {
        char *to = gpb_member(r->c.base, r->c.array, r->c.stride, t->member + l, r->element);
        result = gpb_gpu_download(r->lane, panel, r->c.panel + (CUdeviceptr)(l * r->c.between) * r->element,
                                  to + (size_t)shift * r->element, &r->progress->cols);
        r->progress->bytes_down += t->rows * r->progress->cols * (int64_t)r->element;
        if (!result) r->progress->members++, r->progress->cols = 0;
    }
    return result;
}

static CUresult follow_legacy(run *r)
{
    CUresult result = r->driver->cuEventRecord(r->lane->after, CU_STREAM_LEGACY);
    return result ? result : r->driver->cuStreamWaitEvent(r->lane->stream, r->lane->after, 0);
}

CUresult gpb_gpu_run(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    run r = { .driver = gpb_driver_open(NULL), .lane = lane, .call = call, .plan = plan, .progress = progress,
              .element = gpb_call_element(call),
              .a = { .base = call->a, .array = call->a_array, .stride = call->stride_a, .ld = call->lda,
                     .transposed = call->transa != 'N', .place = facts->a },
              .b = { .base = call->b, .array = call->b_array, .stride = call->stride_b, .ld = call->ldb,
                     .transposed = call->transb != 'N', .place = facts->b },
              .c = { .base = call->c, .array = (const void *const *)call->c_array, .stride = call->stride_c, .ld = call->ldc,
                     .place = facts->c } };
    CUdeviceptr arena = lane->arena;
    r.a.panel = cut(&arena, plan->bytes_a), r.b.panel = cut(&arena, plan->bytes_b), r.c.panel = cut(&arena, plan->bytes_c);
    r.a.packed = cut(&arena, plan->bytes_pa), r.b.packed = cut(&arena, plan->bytes_pb), r.c.packed = cut(&arena, plan->bytes_pc);
    r.tables = arena;

    *progress = (gpb_progress){ 0 };
    const int64_t tiles = gpb_gpu_tiles(call, plan), k = gpb_call_multiplies(call) ? call->k : 0;
    CUresult result = CUDA_SUCCESS;
    /* Work that the program has queued for an operand on the device comes first, as before a kernel on the legacy stream. */
    if (r.a.place == GPB_PLACE_DEVICE || r.b.place == GPB_PLACE_DEVICE || r.c.place == GPB_PLACE_DEVICE)
        result = follow_legacy(&r);
    for (; progress->tiles < tiles && !result; progress->tiles++) {
        gpb_tile t = gpb_gpu_tile(call, plan, progress->tiles);
        gpb_panel panel;
        progress->members = progress->cols = progress->steps = 0;
        if (gpb_gpu_tile_idle(call, &t)) continue;
        result = bring_c(&r, &t, &panel);
        int64_t steps = k ? parts(k, plan->kc) : 1;
        for (int64_t step = 0; step < steps && !result; step++) {
            int64_t p = gpb_gpu_panel(call, plan, progress->tiles, step);
            result = multiply(&r, &t, p, least(plan->kc, k - p), step ? 1 : call->beta);
            if (!result && r.c.place == GPB_PLACE_DEVICE) progress->steps++;
        }
        if (!result && r.c.place != GPB_PLACE_DEVICE) result = send_home(&r, &t, &panel);
        if (result) break;
    }
    CUresult drained = r.driver->cuStreamSynchronize(lane->stream);
    lane->up.used = 0;       /* the stream is empty: every slot is free */
    memset(lane->up.pending, 0, sizeof lane->up.pending);
    return result ? result : drained;
}
