/* SPDX-License-Identifier: MIT */
/* See carry.h. */
#include "src/run/carry.h"

#include <sched.h>

#include "dispatch/matrix.h"
#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/context.h"
#include "src/gpu/dma.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"

static gpb_staging *ring(const gpb_carry *c) { return c->up ? c->lane->up : c->lane->down; }

/* Bytes of one job of the crew. */
static size_t job_bytes(const gpb_carry *c)
{
    double bytes = 0;
    for (int i = 0; i < c->count; i++)
        bytes += (double)c->matrix[i].rows * (double)c->matrix[i].cols
                 * (double)gpb_type_bytes(c->matrix[i].type);
    return (size_t)clamp(bytes / (12 * (gpb_crew_size() + 1)), GPB_STAGING_MIN, GPB_STAGING_MAX);
}

gpb_carry gpb_carry_begin(gpb_lane *lane, bool up, const gpb_carry_matrix *matrices, int count)
{
    gpb_carry c = { .lane = lane, .up = up, .count = count };
    for (int i = 0; i < count; i++) c.matrix[i] = matrices[i];
    gpb_staging_begin(ring(&c), true, job_bytes(&c), NULL);
    return c;
}

/* The matrix that column number `col` is in. *col: its number there. */
static const gpb_carry_matrix *matrix_of(const gpb_carry *c, int64_t *col)
{
    const gpb_carry_matrix *x = c->matrix;
    for (; *col >= x->cols && x < c->matrix + c->count - 1; x++) *col -= x->cols;
    return x;
}

/* Columns of so many bytes, but one at least. */
static int64_t columns_of(const gpb_carry_matrix *x, size_t most)
{
    return max(1, (int64_t)(most / ((size_t)x->rows * gpb_type_bytes(x->type))));
}

/* Of a triangle the rows that any of the columns has, in steps, because the driver's copies join chunks of
   the same rows. */
gpb_chunk gpb_carry_chunk(const gpb_carry_matrix *x, bool up, int64_t col, int64_t end, size_t most)
{
    enum { STEP = 256 };
    const size_t e = gpb_type_bytes(x->type);
    const int64_t cols = min(columns_of(x, most), end - col);
    const int64_t at = gpb_carry_first(x, col, col + cols), diagonal = at + x->shift;
    const int64_t first = x->uplo == 'L' ? min(diagonal, x->rows - 1) / STEP * STEP : 0,
                  last = x->uplo == 'U' ? min(round_up(diagonal + cols, STEP), x->rows) : x->rows,
                  rows = last - first;
    char *caller = (char *)x->caller + (size_t)(first + at * x->ld) * e;
    gpb_chunk chunk = { .device = x->arena + (CUdeviceptr)(first + at * x->ld_arena) * e,
                        .width = (size_t)rows * e, .pitch = (size_t)x->ld_arena * e, .cols = cols,
                        .count = cols,
                        .copy = { .rows = rows, .cols = cols, .element = e, .uplo = x->uplo,
                                  .row0 = gpb_carry_row(x, first), .col0 = diagonal,
                                  .type = x->type } };
    if (up) {
        chunk.copy.from = caller;
        chunk.copy.ld_from = x->ld;
        chunk.copy.ld_to = rows;
    } else {
        chunk.copy.to = caller;
        chunk.copy.ld_from = rows;
        chunk.copy.ld_to = x->ld;
        chunk.copy.target = GPB_STORE_STREAMING;
    }
    return chunk;
}

/* Columns [col, end) of a triangle in device memory. */
static CUresult copy_triangle(gpb_carry *c, const gpb_carry_matrix *x, int64_t col, int64_t end)
{
    const size_t e = gpb_type_bytes(x->type);
    void *caller = (char *)x->caller + (size_t)(col * x->ld) * e;
    void *arena = gpb_pointer(x->arena + (CUdeviceptr)(col * x->ld_arena) * e);
    gpb_trapezoid_args args = { .from = c->up ? caller : arena, .to = c->up ? arena : caller,
                                .ldfrom = c->up ? x->ld : x->ld_arena, .ldto = c->up ? x->ld_arena : x->ld,
                                .rows = x->rows, .cols = end - col,
                                .diagonal = col + x->shift - gpb_carry_row(x, 0), .lower = x->uplo == 'L' };
    const gpb_launch how = { .which = gpb_kernels_pass(GPB_PASS_trapezoid, x->type), .members = 1,
                             .blocks = GPB_TRAPEZOID_BLOCKS(args.rows, args.cols), .args = &args };
    return gpb_kernels_launch(c->lane->device, ring(c)->stream, &how);
}

/* What is not in the host's memory. */
static CUresult copy_direct(gpb_carry *c, const gpb_carry_matrix *x, int64_t from, int64_t to)
{
    const size_t e = gpb_type_bytes(x->type);
    const int64_t col = gpb_carry_first(x, from, to), end = col + to - from;
    if (x->uplo != 'G' && x->place == GPB_PLACE_DEVICE) return copy_triangle(c, x, col, end);
    const gpb_dma_shape shape = { .rows = x->rows, .cols = end - col, .ld = x->ld, .ld_arena = x->ld_arena,
                                  .element = e, .uplo = x->uplo, .row0 = gpb_carry_row(x, 0),
                                  .col0 = col + x->shift };
    c->bytes += x->rows * (end - col) * (int64_t)e;
    return gpb_dma_copy(&shape, (const char *)x->caller + (size_t)(col * x->ld) * e,
                        x->arena + (CUdeviceptr)(col * x->ld_arena) * e, c->up, ring(c)->stream);
}

static bool may_write(const gpb_carry *c) { return !c->may_write || c->may_write(c->of); }

/* Down: from here on what is queued has the columns of the next release. */
static CUresult await_release(gpb_carry *c)
{
    const unsigned which = c->awaited++ % GPB_TILE_EVENTS;
    c->followed = c->until[which];
    return gpb_driver_get()->cuStreamWaitEvent(ring(c)->stream, c->lane->tile[which], 0);
}

/* Bytes of a chunk on its way home, and of a piece of what is not in the host's memory on its way up, so that
   the first columns can be computed on beside the copy of the rest: 60 us of 2450 (dpotrf of 4096, H100).
   Each piece is as large as all before it, because there are 2 us between pieces (H200). */
enum { LOAD = 2 << 20, FIRST_DIRECT = 2 << 20, MOST_DIRECT = 256 << 20 };

/* Queues columns up to `end` as far as there is room in the ring. */
static CUresult queue(gpb_carry *c, int64_t end, bool *busy)
{
    CUresult result = CUDA_SUCCESS;
    while (c->queued < end && !result) {
        if (!c->up && c->queued == c->followed && (result = await_release(c))) return result;
        int64_t col = c->queued;
        const gpb_carry_matrix *x = matrix_of(c, &col);
        if (x->again && col == 0 && c->done < c->queued) return result;
        const int64_t last = min(x->cols, col + (c->up ? end : c->followed) - c->queued);
        if (x->place != GPB_PLACE_HOST) {
            /* Chunks before it must not be overtaken in the count. */
            if (c->up ? c->moved < c->queued : !may_write(c)) return result;
            const int64_t most = clamp(x->at_once ? x->cols : c->queued, columns_of(x, FIRST_DIRECT),
                                       columns_of(x, MOST_DIRECT));
            const int64_t piece = c->up ? min(last, col + most) : last;
            result = copy_direct(c, x, col, piece);
            if (result) return result;
            c->queued += piece - col;
            *busy = true;
            if (!c->up) continue;
            c->moved = c->queued;
            return CUDA_SUCCESS;
        } else {
            const gpb_chunk chunk = gpb_carry_chunk(x, c->up, col, last, c->up ? ring(c)->job_bytes : LOAD);
            if (c->up ? !gpb_staging_push(ring(c), &chunk) : !gpb_staging_has_room(ring(c), &chunk)) break;
            if (!c->up) result = gpb_staging_pull(ring(c), &chunk);
            c->queued += chunk.cols;
        }
        *busy = true;
    }
    return result;
}

/* Counts the columns that the ring has sent. */
static void count_moved(gpb_carry *c)
{
    for (; c->counted < ring(c)->moved; c->counted++)
        c->moved += gpb_staging_chunk(ring(c), c->counted)->count;
}

/* The device may be writing the word, whole. ThreadSanitizer cannot know that, nor that a verdict which is
   read too early is read again once the chunk that it is about has arrived. */
__attribute__((no_sanitize("thread"))) bool gpb_carry_halted(const gpb_carry *c)
{
    return c->verdict && *(const volatile int32_t *)c->verdict != c->fine;
}

/* Lets what has arrived be copied home, and counts what is. */
static CUresult land(gpb_carry *c, bool *busy)
{
    gpb_staging *down = ring(c);
    CUresult result = CUDA_SUCCESS;
    if (!may_write(c)) return result;
    while (!result && down->moved < down->made) {
        bool arrived;
        result = gpb_staging_arrived(down, &arrived);
        /* What the verdict is about was computed before the chunk left. */
        if (result || !arrived || gpb_carry_halted(c)) break;
        gpb_staging_drain(down);
        *busy = true;
    }
    for (const gpb_chunk *chunk; (chunk = gpb_staging_drained(down)); *busy = true) c->done += chunk->count;
    return result;
}

static CUresult go_on(gpb_carry *c, bool *busy)
{
    CUresult result = queue(c, c->up ? gpb_carry_columns(c) : c->ready, busy);
    if (!result && c->up) {
        result = gpb_staging_send(ring(c), c->queued == gpb_carry_columns(c), busy);
        count_moved(c);
    } else if (!result) {
        result = land(c, busy);
    }
    /* The program is ending, and the host can compute as well. */
    return result ? result : !c->lane->must && gpb_gpu_leaving() ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult gpb_carry_go_on(gpb_carry *c)
{
    bool busy = false;
    if (c->up ? c->moved == gpb_carry_columns(c) : c->done == c->ready) return CUDA_SUCCESS;
    return go_on(c, &busy);
}

/* Nothing can be done now: does a job of the crew's, or pauses. */
static void idle(gpb_carry *c)
{
    if (!gpb_staging_help(ring(c))) sched_yield();
}

static CUevent next_event(gpb_carry *c) { return c->lane->arrived[c->events++ % GPB_TILE_EVENTS]; }

CUresult gpb_carry_await(gpb_carry *c, int64_t columns, gpb_carry *beside)
{
    CUresult result = CUDA_SUCCESS;
    if (columns <= c->followed) return result;
    while (c->moved < columns && !result) {
        bool busy = false;
        result = go_on(c, &busy);
        if (!result && beside && beside->done < beside->ready) result = go_on(beside, &busy);
        if (!busy) idle(c);
    }
    const CUevent event = next_event(c);
    if (!result) result = gpb_driver_record(gpb_driver_get(), c->lane->made_in, event, ring(c)->stream);
    if (!result) result = gpb_driver_get()->cuStreamWaitEvent(c->lane->stream, event, 0);
    c->followed = c->moved;
    return result;
}

CUresult gpb_carry_release(gpb_carry *c, int64_t columns)
{
    if (columns <= c->ready) return CUDA_SUCCESS;
    if (c->releases - c->awaited == GPB_TILE_EVENTS) c->releases--;          /* the last one waits for more */
    const unsigned which = c->releases++ % GPB_TILE_EVENTS;
    c->until[which] = c->ready = columns;
    return gpb_driver_record(gpb_driver_get(), c->lane->made_in, c->lane->tile[which], c->lane->stream);
}

CUresult gpb_carry_finish(gpb_carry *c)
{
    CUresult result = CUDA_SUCCESS;
    bool direct = false;
    for (int i = 0; i < c->count; i++) direct |= c->matrix[i].place != GPB_PLACE_HOST;
    while (c->done < c->ready && !result && !gpb_carry_halted(c)) {
        bool busy = false;
        result = go_on(c, &busy);
        if (direct && !result && c->queued == c->ready) {
            result = gpb_driver_get()->cuStreamSynchronize(ring(c)->stream);
            if (!result) result = land(c, &busy);
            if (!result && ring(c)->done == ring(c)->made) c->done = c->ready;
        }
        if (!busy) idle(c);
    }
    return result;
}

void gpb_carry_end(gpb_carry *c, CUresult result)
{
    gpb_staging *r = ring(c);
    /* It must be known how much is home. */
    while (!c->up && r->done < r->moved) {
        for (const gpb_chunk *chunk; (chunk = gpb_staging_drained(r));) c->done += chunk->count;
        if (r->done < r->moved) idle(c);
    }
    if (result) gpb_driver_get()->cuStreamSynchronize(r->stream);
    c->bytes += (int64_t)r->bytes;
    gpb_staging_end(r);
}
