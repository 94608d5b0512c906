/* SPDX-License-Identifier: MIT */
/* Carries out a plan on one lane, whose context is current. For each tile of C: C up if beta wants it, then for each panel of k the panels
   of A and B up and into the form that the kernel wants (gpu_operand.c), and the kernel; then the tile home. Everything goes down one
   stream, so the order of enqueueing is the order of execution.

   What a call may cost beside its kernels, all operands on the device, one tile, one panel, in microseconds of the host: three pointer
   queries and two context switches 1; lane, plan, arena 0.5; a launch 2 to 2.5; the wait, from the last kernel's end, 3 to 4. */
#include "src/gpu_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/split.h"
#include "src/gpu_kernels.h"
#include "src/gpu_operand.h"

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t parts(int64_t size, int64_t panel) { return (size + panel - 1) / panel; }

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

int64_t gpb_gpu_panel_bytes(const gpb_plan *plan)
{
    return plan->bytes_a + plan->bytes_b + plan->bytes_c + plan->bytes_pa + plan->bytes_pb + plan->bytes_pc + plan->bytes_wa
           + plan->bytes_wb + plan->bytes_parts;
}

int64_t gpb_gpu_run_bytes(const gpb_call *call, const gpb_plan *plan)
{
    return gpb_gpu_panel_bytes(plan) + gpb_run_tables(call, plan);
}

/* ---- kernels */

static CUresult launch_kernel(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args, int64_t splits)
{
    return gpb_gpu_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = gpb_function_of(kernel), .blocks = GPB_TILES(args->m, args->n, kernel->bm, kernel->bn), .members = args->batch * splits,
        .args = args });
}

/* A kernel whose k is cut, if the plan says so: the parts are added up in a launch of their own. */
static CUresult multiply_in_parts(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args)
{
    const bool cut = args->k && r->plan->splits > 1 && r->parts;
    if (!cut) return launch_kernel(r, kernel, args, 1);
    args->splits = r->plan->splits;
    args->partials = (float *)(uintptr_t)r->parts;
    gpb_reduce_args reduce = { .m = args->m, .n = args->n, .splits = args->splits, .partials = args->partials, .c = args->c,
                               .ldc = args->ldc, .alpha = args->alpha, .beta = args->beta, .batch = args->batch,
                               .stride_c = args->stride_c, .items = args->items };
    CUresult result = launch_kernel(r, kernel, args, args->splits);
    if (result) return result;
    return gpb_gpu_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = GPB_FUNCTION_REDUCE, .blocks = GPB_REDUCE_BLOCKS(args->m, args->n, args->splits), .members = args->batch,
        .args = &reduce, .early = true });
}

/* Where the guard words of both operands lie, and which are set. */
static void point_to_guards(const gpb_run *r, gpb_gemm_args *args)
{
    const int slices = gpb_plan_slices(r->plan->kernel);
    args->guard_a = (const uint64_t *)(uintptr_t)(r->a.given.at + (CUdeviceptr)gpb_split_guard(args->m, args->k, slices));
    args->guard_b = (const uint64_t *)(uintptr_t)(r->b.given.at + (CUdeviceptr)gpb_split_guard(args->n, args->k, slices));
    args->stride_guard_a = r->a.given.between / 2, args->stride_guard_b = r->b.given.between / 2;      /* from 4 bytes to 8 */
    args->epoch_a = r->a.epoch, args->epoch_b = r->b.epoch;
}

/* A SPLIT kernel, on the blocks at args->level: as many clusters as there is room for. */
static CUresult launch_clusters(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args)
{
    gpb_device *device = r->lane->device;
    const int which = gpb_function_of(kernel);
    CUfunction function;
    args->counters = (uint32_t *)(uintptr_t)r->parts;
    args->partials = (float *)(uintptr_t)(r->parts + GPB_SPLIT_COUNTERS * sizeof *args->counters);
    CUresult result = gpb_gpu_function(device, which, &function);      /* then its clusters are known */
    return result ? result : gpb_gpu_launch(device, r->stream, &(gpb_launch){
        .which = which, .blocks = (int64_t)device->clusters[which] * GPB_SPLIT_CLUSTER, .members = 1, .args = args, .early = true });
}

static CUresult multiply_wide(gpb_run *r, const gpb_tile *t)
{
    gpb_gemm_args args = r->last;
    gpb_view a, b;
    CUresult result = gpb_run_bring_wide(r, t, &args, &a, &b);
    args.level = 1;
    if (!result) result = gpb_run_point(r, t, &a, &b, &r->c.given, &args);
    return result ? result : launch_clusters(r, r->plan->wide, &args);
}

/* The blocks of C that FP16 slices do not do justice to: those at level 1 by the wide kernel, if there is one, the others by the
   stand-in. */
static CUresult stand_in(gpb_run *r, const gpb_tile *t)
{
    const bool wide = r->plan->wide && multiply_wide(r, t) == CUDA_SUCCESS;
    r->last.level = wide ? 2 : 1;
    gpb_gemm_args args = r->last;
    CUresult result = gpb_run_point(r, t, &r->a.raw, &r->b.raw, &r->c.given, &args);
    if (!result) result = launch_kernel(r, r->plan->stand_in, &args, 1);
    /* In place, the blocks that are not left are in C already. */
    r->progress->torn = result && r->c.place == GPB_PLACE_DEVICE && !r->c.packed;
    return result;
}

static CUresult multiply_in_slices(gpb_run *r, const gpb_tile *t, gpb_gemm_args *args)
{
    point_to_guards(r, args);
    CUresult result = launch_clusters(r, r->plan->kernel, args);
    r->last = *args;
    return result || r->only ? result : stand_in(r, t);
}

/* beta times the tile of C plus panels k1 deep that start at p; with pack_c into the workspace and from there home. */
static CUresult multiply(gpb_run *r, const gpb_tile *t, int64_t p, int64_t k1, double beta)
{
    const gpb_plan *plan = r->plan;
    const gpb_view *home = &r->c.raw, *to = &r->c.given;
    const bool slices = plan->kernel->form == GPB_FORM_SPLIT;
    gpb_gemm_args args = { .m = t->rows, .n = t->cols, .k = k1, .alpha = r->call->alpha, .beta = r->c.packed ? 0 : beta,
                           .batch = t->members };
    CUresult result = k1 ? gpb_run_bring_ab(r, t, p, k1) : CUDA_SUCCESS;
    if (!result) result = gpb_run_point(r, t, k1 ? &r->a.given : NULL, k1 ? &r->b.given : NULL, to, &args);
    if (!result && slices && k1) {
        result = multiply_in_slices(r, t, &args);
    } else if (!result) {
        result = multiply_in_parts(r, slices ? plan->stand_in : plan->kernel, &args);
    }
    if (result || !r->c.packed) return result;
    gpb_unpack_args unpack = { .m = t->rows, .n = t->cols, .w = (void *)(uintptr_t)to->at, .ldw = to->cs, .c = (void *)(uintptr_t)home->at,
                               .ldc = home->cs, .beta = beta, .row0 = t->i, .col0 = t->j, .batch = t->members, .stride_w = to->between,
                               .stride_c = home->between, .uplo = r->call->uplo };
    if (home->scattered) unpack.c_items = (void *const *)(uintptr_t)gpb_run_table(r, 3);
    return gpb_gpu_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = GPB_FUNCTION_UNPACK, .blocks = GPB_TILES(t->rows, t->cols, GPB_PACK_TILE, GPB_PACK_TILE), .members = t->members,
        .args = &unpack });
}

static CUresult send_home(gpb_run *r, const gpb_tile *t, const gpb_panel *panel)
{
    CUresult result = CUDA_SUCCESS;
    int64_t shift = t->i + t->j * r->c.ld;
    for (int64_t l = 0; l < t->members && !result; l++) {
        char *to = gpb_member(r->c.base, r->c.array, r->c.stride, t->member + l, r->element);
        result = gpb_gpu_download(r->lane, panel, r->c.panel + (CUdeviceptr)(l * r->c.raw.between) * r->element,
                                  to + (size_t)shift * r->element, &r->progress->cols);
        r->progress->bytes_down += t->rows * r->progress->cols * (int64_t)r->element;
        if (!result) r->progress->members++, r->progress->cols = 0;
    }
    return result;
}

/* Work that the program has queued for an operand on the device comes first, as before a kernel on the legacy stream. Where there is
   nothing but kernels to queue, and no other call whose kernels could run beside them, that stream itself will do: it saves two driver
   calls and the way from stream to stream. */
static CUresult follow_legacy(gpb_run *r)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    const gpb_call *call = r->call;
    const bool reads = gpb_call_multiplies(call), a = r->a.place == GPB_PLACE_DEVICE, b = r->b.place == GPB_PLACE_DEVICE;
    const bool c = r->c.place == GPB_PLACE_DEVICE;
    if (!a && !b && !c) return CUDA_SUCCESS;
    if (c && (!reads || (a && b)) && !call->c_array && r->lane->alone) {
        r->stream = CU_STREAM_LEGACY;
        return CUDA_SUCCESS;
    }
    CUresult result = driver->cuEventRecord(r->lane->after, CU_STREAM_LEGACY);
    return result ? result : driver->cuStreamWaitEvent(r->stream, r->lane->after, 0);
}

/* Which of the `count` guard words are at the level or above, of each member of the tile. */
static CUresult fetch_marks(const gpb_tile *t, int level, const uint64_t *guard, int64_t stride, uint64_t epoch, int64_t count,
                            bool *marks, int64_t apart)
{
    uint64_t *words = malloc((size_t)count * sizeof *words);
    CUresult result = words ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    const gpb_panel panel = { .rows = count, .cols = 1, .ld = count, .element = sizeof *words };
    for (int64_t l = 0; l < t->members && !result; l++) {
        result = gpb_gpu_bounce(&panel, guard + l * stride, words, true);
        for (int64_t i = 0; i < count; i++) marks[l * apart + i] = gpb_guard_level(words[i], epoch) >= level;
    }
    free(words);
    return result;
}

/* What the host needs to know to do the stand-in's work. */
static void explain(gpb_run *r)
{
    const gpb_gemm_args *args = &r->last;
    const gpb_tile t = gpb_gpu_tile(r->call, r->plan, r->progress->tiles);
    const int64_t rows = gpb_split_guards(args->m), cols = gpb_split_guards(args->n);
    bool *marks = calloc((size_t)t.members, (size_t)(rows + cols) * sizeof *marks);
    if (marks && !fetch_marks(&t, args->level, args->guard_a, args->stride_guard_a, args->epoch_a, rows, marks, rows + cols)
        && !fetch_marks(&t, args->level, args->guard_b, args->stride_guard_b, args->epoch_b, cols, marks + rows, rows + cols))
        r->progress->marks = marks;
    else
        free(marks);
}

/* Waits for all that is queued; should waiting itself fail, once more. */
static CUresult wait(const gpb_run *r)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    CUresult result = driver->cuStreamSynchronize(r->stream);
    return result && !gpb_gpu_sticky(result) ? driver->cuStreamSynchronize(r->stream) : result;
}

/* Waits, and computes what then turns out to be the stand-in's. */
static CUresult drain(gpb_run *r, CUresult result)
{
    const volatile uint32_t *notice = r->lane->notice;
    gpb_progress *progress = r->progress;
    CUresult drained = wait(r);
    progress->stood_in = *notice != 0;
    if (r->only && (progress->stood_in || drained) && !result) {
        const gpb_tile t = gpb_gpu_tile(r->call, r->plan, 0);
        result = stand_in(r, &t);
        if (result) progress->tiles = progress->steps = 0;
        CUresult again = wait(r);
        if (!drained) drained = again;
    }
    if (progress->torn && progress->stood_in) {
        explain(r);
    } else if (progress->torn) {      /* no block is marked: there was nothing to stand in for */
        progress->torn = false;
        progress->steps++;
    }
    r->lane->up.used = 0;       /* the stream is empty: every slot is free */
    memset(r->lane->up.pending, 0, sizeof r->lane->up.pending);
    return result ? result : drained;
}

CUresult gpb_gpu_run(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    gpb_run r = gpb_run_begin(lane, call, plan, facts, progress);
    const int64_t tiles = gpb_gpu_tiles(call, plan), k = gpb_call_multiplies(call) ? call->k : 0, steps = k ? parts(k, plan->kc) : 1;
    const bool in_place = r.c.place == GPB_PLACE_DEVICE;
    *progress = (gpb_progress){ 0 };
    *lane->notice = 0;
    r.only = plan->kernel->form == GPB_FORM_SPLIT && k && tiles == 1 && steps == 1 && in_place && !r.c.packed;
    CUresult result = follow_legacy(&r);
    for (; progress->tiles < tiles && !result; progress->tiles++) {
        gpb_tile t = gpb_gpu_tile(call, plan, progress->tiles);
        gpb_panel panel;
        progress->members = progress->cols = progress->steps = 0;
        if (gpb_gpu_tile_idle(call, &t)) continue;
        result = gpb_run_bring_c(&r, &t, &panel);
        for (int64_t step = 0; step < steps && !result; step++) {
            int64_t p = gpb_gpu_panel(call, plan, progress->tiles, step);
            result = multiply(&r, &t, p, least(plan->kc, k - p), step ? 1 : call->beta);
            if (!result && in_place) progress->steps++;
        }
        if (!result && !in_place) result = send_home(&r, &t, &panel);
        if (result) break;
    }
    return drain(&r, result);
}
