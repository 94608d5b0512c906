/* SPDX-License-Identifier: MIT */
/* Carries out a plan on one lane, whose context is current. Walkers go over the same schedule (dispatch/schedule.h), each as far as it can
   without waiting for another: `post` hands strips of A and B to the belt up; `launch` queues the kernels of a strip that is on its way;
   `fetch` puts tiles of C on the belt down; `land` sends home what has come. The link's two directions and the kernels so work at once.

   What a call may cost beside its kernels, all operands on the device, one tile, one panel, in microseconds of the host: three pointer
   queries and two context switches 1; lane, plan, arena 0.5; a launch 2 to 2.5; the wait, from the last kernel's end, 3 to 4. */
#include "src/gpu_run.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/split.h"
#include "src/gpu_copy.h"
#include "src/gpu_multiply.h"

enum { AHEAD = GPB_TILE_EVENTS };        /* moves that one walker may be before the next */

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

typedef struct walker {
    gpb_walk walk;
    gpb_move move;                       /* the next to be dealt with */
    bool ended;
    int64_t moves, tiles;                /* dealt with before it; tiles: with the last of k */
    int64_t member, row, col;            /* of the move, dealt with */
} walker;

typedef struct flow {
    gpb_run run;
    const gpb_driver *driver;
    walker post, launch, fetch, land;
    gpb_move only;                       /* the last that was launched with a tile of a C in place */
    uint64_t sent_by[AHEAD];             /* loads made when a move's strip was posted whole */
    bool staged, home;                   /* the crew has work; C goes home to the caller */
    bool past;                           /* stores go past the caches */
    bool hopeful;                        /* tiles are computed without the kernels for marked blocks, until one is marked */
    bool guarded;                        /* one was: */
    int64_t guarded_from;                /* tiles from this one on were computed with these kernels */
    size_t fetch_bytes;                  /* of a load on the belt down */
    int idle;                            /* turns in a row in which nothing was to be done */
} flow;

int64_t gpb_gpu_panel_bytes(const gpb_plan *plan)
{
    return plan->bytes_a + plan->bytes_b + plan->bytes_c + plan->bytes_pa + plan->bytes_pb + plan->bytes_pc + plan->bytes_wa
           + plan->bytes_wb + plan->bytes_parts;
}

int64_t gpb_gpu_run_bytes(const gpb_call *call, const gpb_plan *plan)
{
    return gpb_gpu_panel_bytes(plan) + gpb_run_tables(call, plan);
}

/* ---- walkers */

static void next(walker *w)
{
    const gpb_move *move = gpb_schedule_next(&w->walk);
    w->ended = !move;
    if (move) w->move = *move;
    w->member = w->row = w->col = 0;
}

static walker begin(const gpb_call *call, const gpb_plan *plan)
{
    walker w = { .walk = gpb_schedule_begin(call, plan) };
    next(&w);
    return w;
}

static bool ends_tile(const gpb_move *move) { return move->tile.rows && move->last; }

static void advance(walker *w)
{
    w->moves++;
    w->tiles += ends_tile(&w->move);
    next(w);
}

/* To the next move that completes a tile of C; past: beyond the one at hand. */
static void to_tile(walker *w, bool past)
{
    if (past) advance(w);
    while (!w->ended && !ends_tile(&w->move)) advance(w);
}

static gpb_operand *operand_of(gpb_run *r, const gpb_move *move) { return move->operand == 'a' ? &r->a : &r->b; }

/* ---- A and B up */

/* The panel's buffer is free again: the kernels on the panel before the last have been queued. */
static bool has_buffer(const flow *f, const gpb_operand *x, const gpb_move *move)
{
    const int which = !x->is_a;
    return move->panel[which] <= x->buffers || f->launch.ended || f->launch.move.panel[which] >= move->panel[which] - 1;
}

/* What must have happened on the GPU before the strip may be written; NULL: nothing. */
static CUevent buffer_event(const flow *f, const gpb_operand *x, const gpb_move *move)
{
    const int64_t number = move->panel[!x->is_a];
    return number > x->buffers ? f->run.lane->freed[!x->is_a][number % 2] : NULL;
}

/* The next load of a strip that goes by the crew; loads at first are small, so that the engines begin soon. */
static gpb_load load_up(const flow *f, const walker *w, const gpb_operand *x, const gpb_stored *s)
{
    const size_t e = f->run.element;
    size_t most = (size_t)GPB_BELT_LEAST << (f->run.lane->up->made < 4 ? f->run.lane->up->made : 4);
    if (most > f->run.lane->up->piece) most = f->run.lane->up->piece;
    const int64_t fit = (int64_t)(most / e), rows = least(s->rows - w->row, fit), whole = rows == s->rows;
    const int64_t cols = whole ? least(s->cols - w->col, fit / rows) : 1;
    const char *from = gpb_member(x->base, x->array, x->stride, w->move.block.member + w->member, e);
    const CUdeviceptr to = gpb_run_strip(&f->run, &w->move) + (CUdeviceptr)(w->member * s->rows * s->cols + w->col * s->rows + w->row) * e;
    return (gpb_load){ .device = to, .width = (size_t)rows * e, .pitch = (size_t)s->rows * e, .cols = cols,
                       .copy = { .from = from + (size_t)(s->row + w->row + (s->col + w->col) * x->ld) * e, .rows = rows, .cols = cols,
                                 .ld_from = x->ld, .ld_to = rows, .element = e, .uplo = 'G' } };
}

/* A strip that the driver can read where it is: pinned, or on another GPU. */
static CUresult copy_up(flow *f, const walker *w, const gpb_operand *x, const gpb_stored *s)
{
    gpb_run *r = &f->run;
    CUevent after = buffer_event(f, x, &w->move);
    CUresult result = after ? f->driver->cuStreamWaitEvent(r->lane->up->stream, after, 0) : CUDA_SUCCESS;
    const gpb_panel panel = { .rows = s->rows, .cols = s->cols, .ld = x->ld, .ld_arena = s->rows, .element = r->element, .uplo = 'G' };
    for (int64_t l = 0; l < w->move.block.members && !result; l++) {
        const char *from = gpb_member(x->base, x->array, x->stride, w->move.block.member + l, r->element);
        result = gpb_gpu_copy(&panel, from + (size_t)(s->row + s->col * x->ld) * r->element,
                              gpb_run_strip(r, &w->move) + (CUdeviceptr)(l * s->rows * s->cols) * r->element, true, r->lane->up->stream);
        r->lane->up->bytes += (uint64_t)(s->rows * s->cols) * r->element;
    }
    return result;
}

static bool offer(flow *f, walker *w, const gpb_operand *x, const gpb_stored *s)
{
    gpb_load load = load_up(f, w, x, s);
    if (w->member == 0 && w->row == 0 && w->col == 0) load.after = buffer_event(f, x, &w->move);
    if (!gpb_belt_offer(f->run.lane->up, &load)) return false;
    w->row += load.copy.rows;
    if (w->row == s->rows) w->row = 0, w->col += load.cols;
    if (w->col == s->cols) w->col = 0, w->member++;
    return true;
}

/* Strips in ordinary memory may hold pointer arrays of several kinds: then each goes as the driver says. */
static CUresult post(flow *f, bool *busy)
{
    walker *w = &f->post;
    CUresult result = CUDA_SUCCESS;
    while (!w->ended && !result) {
        const gpb_operand *x = operand_of(&f->run, &w->move);
        if (w->move.operand && x->place != GPB_PLACE_DEVICE) {
            if (w->moves - f->launch.moves >= AHEAD || !has_buffer(f, x, &w->move)) return result;
            const gpb_stored s = gpb_run_stored(&f->run, &w->move);
            if (x->place == GPB_PLACE_HOST) {
                while (w->member < w->move.block.members && offer(f, w, x, &s)) *busy = true;
                if (w->member < w->move.block.members) return result;
            } else {
                result = copy_up(f, w, x, &s);
            }
        }
        f->sent_by[w->moves % AHEAD] = f->run.lane->up->made;
        *busy = true;
        advance(w);
    }
    return result;
}

/* ---- kernels */

/* The move's strip is on its way to the device, and C's buffer is free if it is written: what was in it is on its way home. */
static bool may_launch(const flow *f)
{
    const walker *w = &f->launch;
    if (f->post.moves <= w->moves || f->run.lane->up->moved < f->sent_by[w->moves % AHEAD]) return false;
    if (!f->home || !w->move.tile.rows) return true;
    return (!w->move.last || w->tiles - f->fetch.tiles < AHEAD)
           && (w->move.panel[2] <= f->run.c.buffers || f->fetch.ended || f->fetch.move.panel[2] >= w->move.panel[2] - 1);
}

/* What the kernels must wait for: the strip, if it came over the link; the way home of what was in this buffer of C before. */
static CUresult wait_for(flow *f, const walker *w)
{
    gpb_lane *lane = f->run.lane;
    const gpb_move *move = &w->move;
    CUresult result = CUDA_SUCCESS;
    if (move->operand && operand_of(&f->run, move)->place != GPB_PLACE_DEVICE) {
        result = f->driver->cuEventRecord(lane->arrived, lane->up->stream);
        if (!result) result = f->driver->cuStreamWaitEvent(f->run.stream, lane->arrived, 0);
    }
    if (!result && f->home && move->tile.rows && f->run.c.at_panel != move->panel[2] && move->panel[2] > f->run.c.buffers)
        result = f->driver->cuStreamWaitEvent(f->run.stream, lane->home[move->panel[2] % 2], 0);
    return result;
}

/* A panel that is used no more: its buffer may be filled again when the kernels so far are done. */
static CUresult release(flow *f, const gpb_move *before)
{
    CUresult result = CUDA_SUCCESS;
    for (int x = 0; x < 2 && !f->launch.ended && !result; x++)
        if (before->panel[x] && f->launch.move.panel[x] != before->panel[x] && (x ? f->run.b.buffers : f->run.a.buffers) > 1)
            result = f->driver->cuEventRecord(f->run.lane->freed[x][before->panel[x] % 2], f->run.stream);
    return result;
}

/* Columns [col, col + cols) of a tile of C, of its member l, by the driver: up, of a C that only it can reach, where beta C is added on the
   device; or home. */
static CUresult copy_c(flow *f, const gpb_move *move, int64_t l, int64_t col, int64_t cols, bool up)
{
    gpb_run *r = &f->run;
    gpb_belt *belt = up ? r->lane->up : r->lane->down;
    const gpb_tile *t = &move->tile, *block = &move->block;
    const gpb_panel panel = { .rows = t->rows, .cols = cols, .ld = r->c.ld, .ld_arena = block->rows, .element = r->element,
                              .uplo = r->call->uplo, .row0 = t->i, .col0 = t->j + col };
    const int64_t at = l * block->rows * block->cols + t->i - block->i + (t->j + col - block->j) * block->rows;
    const char *callers = gpb_member(r->c.base, r->c.array, r->c.stride, t->member + l, r->element);
    belt->bytes += (uint64_t)(t->rows * cols) * r->element;
    return gpb_gpu_copy(&panel, callers + (size_t)(t->i + (t->j + col) * r->c.ld) * r->element,
                        gpb_run_block(r, move) + (CUdeviceptr)at * r->element, up, up ? r->stream : belt->stream);
}

static CUresult launch(flow *f, bool *busy)
{
    walker *w = &f->launch;
    gpb_run *r = &f->run;
    CUresult result = CUDA_SUCCESS;
    while (!w->ended && !result && may_launch(f)) {
        const gpb_move before = w->move;
        const bool fetched = before.first && before.tile.rows && r->c.place == GPB_PLACE_ELSEWHERE && r->call->beta != 0;
        result = wait_for(f, w);
        for (int64_t l = 0; fetched && l < before.tile.members && !result; l++)
            result = copy_c(f, &before, l, 0, before.tile.cols, true);
        if (!result) result = gpb_run_multiply(r, &before, !f->hopeful || f->guarded);
        if (!result && f->home && ends_tile(&before))
            result = f->driver->cuEventRecord(r->lane->tile[w->tiles % AHEAD], r->stream);
        if (result) break;
        if (!f->home && before.tile.rows) r->progress->steps++, f->only = before;
        advance(w);
        if (!f->home && ends_tile(&before)) r->progress->tiles++, r->progress->steps = 0;
        result = release(f, &before);
        *busy = true;
    }
    return result;
}

/* ---- C home */

/* The driver writes to the caller's memory itself: nothing is to be added there. */
static bool is_direct(const gpb_run *r)
{
    return r->c.place == GPB_PLACE_ELSEWHERE || (r->c.place == GPB_PLACE_PINNED && r->call->beta == 0);
}

static gpb_load load_down(const flow *f, const walker *w)
{
    const gpb_run *r = &f->run;
    const gpb_tile *t = &w->move.tile, *block = &w->move.block;
    const size_t e = r->element, column = (size_t)t->rows * e;
    const int64_t whole = r->call->uplo == 'G' ? t->cols : 1, fit = is_direct(r) ? whole : (int64_t)(f->fetch_bytes / column);
    const int64_t cols = least(t->cols - w->col, fit ? fit : 1);
    const int64_t at = w->member * block->rows * block->cols + t->i - block->i + (t->j - block->j + w->col) * block->rows;
    char *to = gpb_member(r->c.base, r->c.array, r->c.stride, t->member + w->member, e);
    gpb_load load = { .device = gpb_run_block(r, &w->move) + (CUdeviceptr)at * e, .width = column, .pitch = (size_t)block->rows * e,
                      .cols = cols, .count = cols,
                      .copy = { .to = to + (size_t)(t->i + (t->j + w->col) * r->c.ld) * e, .rows = t->rows, .cols = cols,
                                .ld_from = t->rows, .ld_to = r->c.ld, .element = e, .uplo = r->call->uplo, .row0 = t->i,
                                .col0 = t->j + w->col, .adds = r->call->beta != 0, .beta = (float)r->call->beta } };
    load.copy.target = f->past ? GPB_TARGET_PAST : GPB_TARGET_FAR;
    load.direct = is_direct(r);
    load.opens = w->member == 0 && w->col == 0;
    load.ends_member = w->col + cols == t->cols;
    load.ends_tile = load.ends_member && w->member + 1 == t->members;
    return load;
}

/* A tile's first load: behind its kernels, and those for marked blocks if it was computed without them before it was known that there are such. */
static CUresult open_tile(flow *f, const walker *w)
{
    gpb_lane *lane = f->run.lane;
    CUresult result = CUDA_SUCCESS;
    if (f->guarded && w->tiles < f->guarded_from) {
        result = gpb_run_stand_in(&f->run, &w->move);
        if (!result) result = f->driver->cuEventRecord(lane->tile[w->tiles % AHEAD], f->run.stream);
    }
    return result ? result : f->driver->cuStreamWaitEvent(lane->down->stream, lane->tile[w->tiles % AHEAD], 0);
}

/* As many loads as there is room for. *whole: the tile is on its way with all of them. */
static CUresult fetch_tile(flow *f, walker *w, bool *whole, bool *busy)
{
    gpb_lane *lane = f->run.lane;
    CUresult result = CUDA_SUCCESS;
    *whole = false;
    while (!*whole && !result) {
        const gpb_load load = load_down(f, w);
        if (!gpb_belt_has_room(lane->down, &load)) return result;
        if (load.opens) result = open_tile(f, w);
        if (!result && load.direct) result = copy_c(f, &w->move, w->member, w->col, load.cols, false);
        if (!result) result = gpb_belt_fetch(lane->down, &load);
        if (result) return result;
        *busy = true;
        *whole = load.ends_tile;
        w->col += load.cols;
        if (load.ends_member) w->col = 0, w->member++;
    }
    return result;
}

static CUresult fetch(flow *f, bool *busy)
{
    walker *w = &f->fetch;
    CUresult result = CUDA_SUCCESS;
    while (f->home && !w->ended && !result) {
        if (ends_tile(&w->move)) {
            bool whole = false;
            if (f->launch.tiles > w->tiles) result = fetch_tile(f, w, &whole, busy);
            if (result || !whole) return result;
        }
        const int64_t block = w->move.panel[2];
        advance(w);
        *busy = true;
        if (f->run.c.buffers > 1 && (w->ended || w->move.panel[2] != block))
            result = f->driver->cuEventRecord(f->run.lane->home[block % 2], f->run.lane->down->stream);
    }
    return result;
}

/* A block of C is marked, and no tile has been computed with the kernels for that. */
static bool is_marked(const flow *f) { return f->hopeful && !f->guarded && *(volatile uint32_t *)f->run.lane->notice; }

/* Blocks of C are marked after all: what comes from this tile on was computed without the kernels for them, and is fetched again. */
static void fetch_again(flow *f)
{
    gpb_belt *down = f->run.lane->down;
    f->guarded = true;
    f->guarded_from = f->launch.tiles;
    for (uint64_t x = down->moved; x < down->made; x++) gpb_belt_load(down, x)->lost = true;
    f->fetch = f->land;
}

/* The mark that counts for a tile was set, if at all, before its kernels ran. */
static CUresult land(flow *f, bool *busy)
{
    gpb_belt *down = f->run.lane->down;
    CUresult result = CUDA_SUCCESS;
    while (down->moved < down->made) {
        bool arrived;
        result = gpb_belt_arrived(down, &arrived);
        if (result || !arrived) return result;
        const gpb_load *load = gpb_belt_load(down, down->moved);
        if (load->opens && is_marked(f)) fetch_again(f);
        const bool ends = load->ends_tile && !load->lost;
        gpb_belt_land(down);
        *busy = true;
        if (ends) to_tile(&f->land, true);
    }
    return result;
}

static void commit(flow *f, bool *busy)
{
    gpb_progress *progress = f->run.progress;
    for (const gpb_load *load; f->home && (load = gpb_belt_home(f->run.lane->down));) {
        *busy = true;
        if (load->lost) continue;
        progress->cols += load->count;
        if (load->ends_member) progress->members++, progress->cols = 0;
        if (load->ends_tile) progress->tiles++, progress->members = 0;
    }
}

/* ---- the run */

/* Nothing to do for now: a copy that waits for a worker, or a rest. Not while workers abound: a copy takes 50 us, in which the engines
   may run out of work. */
static void idle(flow *f)
{
    gpb_lane *lane = f->run.lane;
    enum { FEW = 8, PATIENT = 64, LONG = 512 };
    f->idle++;
    if (f->staged && (gpb_crew_size() < FEW || f->idle > PATIENT) && (gpb_crew_help(&lane->down->crew) || gpb_crew_help(&lane->up->crew)))
        f->idle = 0;
    else if (f->idle > LONG)
        sched_yield();
    else
        __builtin_ia32_pause();
}

static bool is_over(const flow *f)
{
    const gpb_belt *down = f->run.lane->down;
    return f->launch.ended && (!f->home || (f->fetch.ended && down->done == down->made));
}

static CUresult pump(flow *f)
{
    bool busy = false;
    CUresult result = post(f, &busy);
    if (!result && f->staged) result = gpb_belt_send(f->run.lane->up, f->post.ended, &busy);
    if (!result) result = launch(f, &busy);
    if (!result) result = fetch(f, &busy);
    if (!result && f->home) result = land(f, &busy);
    commit(f, &busy);
    if (busy) f->idle = 0;
    else idle(f);
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

/* ---- the end of C in place */

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
static void explain(gpb_run *r, const gpb_tile *t)
{
    const gpb_gemm_args *args = &r->last;
    const int64_t rows = gpb_split_guards(args->m), cols = gpb_split_guards(args->n);
    bool *marks = calloc((size_t)t->members, (size_t)(rows + cols) * sizeof *marks);
    if (marks && !fetch_marks(t, args->level, args->guard_a, args->stride_guard_a, args->epoch_a, rows, marks, rows + cols)
        && !fetch_marks(t, args->level, args->guard_b, args->stride_guard_b, args->epoch_b, cols, marks + rows, rows + cols))
        r->progress->marks = marks;
    else
        free(marks);
}

/* Waits for all that is queued; should waiting itself fail, once more. A driver that cannot wait at all has to be given up: kernels may still
   be at work on what the program looks at next. */
static CUresult wait(const flow *f, CUstream stream)
{
    CUresult result = f->driver->cuStreamSynchronize(stream);
    if (result && !gpb_gpu_sticky(result)) result = f->driver->cuStreamSynchronize(stream);
    return result && !gpb_gpu_sticky(result) ? CUDA_ERROR_UNKNOWN : result;
}

/* Waits, and computes what then turns out to be the stand-in's. */
static CUresult end_in_place(flow *f, CUresult result)
{
    gpb_run *r = &f->run;
    gpb_progress *progress = r->progress;
    CUresult drained = wait(f, r->stream);
    progress->stood_in = *(volatile uint32_t *)r->lane->notice != 0;
    if (f->hopeful && (progress->stood_in || drained) && !result) {
        result = gpb_run_stand_in(r, &f->only);
        if (result) progress->tiles = progress->steps = 0;
        CUresult again = wait(f, r->stream);
        if (!drained) drained = again;
    }
    if (progress->torn && progress->stood_in) {
        explain(r, f->hopeful ? &f->only.tile : &f->launch.move.tile);
    } else if (progress->torn) {      /* no block is marked: there was nothing to stand in for */
        progress->torn = false;
        progress->steps++;
    }
    return drained ? drained : result;
}

/* ---- the end of C at home */

/* After a failure: what the crew has in hand is finished, so that it is known what of C is home; then nothing may use the rings. The failure, or
   a worse one. */
static CUresult stop(flow *f, CUresult failure)
{
    gpb_lane *lane = f->run.lane;
    bool busy;
    for (; lane->down->done < lane->down->moved; commit(f, &busy))
        if (!gpb_crew_help(&lane->down->crew)) sched_yield();
    gpb_belt_let_go(lane->up);
    const CUresult stuck[] = { wait(f, lane->up->stream), wait(f, f->run.stream), wait(f, lane->down->stream) };
    for (int i = 0; i < 3; i++)
        if (stuck[i]) return stuck[i];
    for (; !is_marked(f) && lane->down->moved < lane->down->made && gpb_belt_load(lane->down, lane->down->moved)->direct; commit(f, &busy))
        gpb_belt_land(lane->down);      /* the driver has brought them home */
    return failure;
}

static CUresult end(flow *f, CUresult result)
{
    gpb_lane *lane = f->run.lane;
    gpb_progress *progress = f->run.progress;
    progress->bytes_up = (int64_t)lane->up->bytes, progress->bytes_down = (int64_t)lane->down->bytes;
    if (f->home) progress->stood_in = *(volatile uint32_t *)lane->notice != 0;
    else result = end_in_place(f, result);
    if (result) result = stop(f, result);
    if (f->staged) {
        gpb_belt_let_go(lane->up);
        gpb_belt_end(lane->up), gpb_belt_end(lane->down);
    }
    return result;
}

/* A C so large is not in any cache when the program looks at it: rectangle.c copies it 1.4 to 1.5 times as fast if lines need not be read to be
   written (2 cores of a Sapphire Rapids; at 16 MiB it is about even). */
#define PAST_BYTES 0x1p25

static double within(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

/* Bytes of a job of the crew's, so that every core has several. */
static size_t piece(double bytes) { return (size_t)within(bytes / (3 * (gpb_crew_size() + 1)), GPB_BELT_LEAST, GPB_BELT_MOST); }

static flow set_up(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    const bool reads = gpb_call_multiplies(call), once = plan->buffers_a == 1 && plan->buffers_b == 1 && plan->buffers_c == 1;
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    flow f = { .run = gpb_run_begin(lane, call, plan, facts, progress), .driver = gpb_driver_open(NULL), .home = facts->c != GPB_PLACE_DEVICE };
    f.staged = (reads && (facts->a == GPB_PLACE_HOST || facts->b == GPB_PLACE_HOST)) || gpb_place_on_host(facts->c);
    /* Not where what is home cannot be fetched again: beta C is in it. */
    f.hopeful = plan->kernel->form == GPB_FORM_SPLIT && reads && once && !f.run.c.packed
                && (facts->c != GPB_PLACE_ELSEWHERE || call->beta == 0);
    f.post = f.launch = f.fetch = f.land = begin(call, plan);
    to_tile(&f.land, false);
    f.past = 4 * m * n >= PAST_BYTES;
    f.fetch_bytes = (size_t)within(m * n / 2, 128 << 10, 1 << 20);
    gpb_belt_begin(lane->up, piece(4 * (m + n) * k)), gpb_belt_begin(lane->down, piece(4 * m * n));
    return f;
}

CUresult gpb_gpu_run(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress)
{
    flow f = set_up(lane, call, plan, facts, progress);
    *progress = (gpb_progress){ 0 };
    *lane->notice = 0;
    if (f.staged) gpb_belt_open(lane->up), gpb_belt_open(lane->down);
    CUresult result = follow_legacy(&f.run);
    while (!result && !is_over(&f)) result = pump(&f);
    return end(&f, result);
}
