/* SPDX-License-Identifier: MIT */
/* Carries out a plan on one lane, whose context is current. Four stages go through the same schedule
   (dispatch/schedule.h), each as far as it can without waiting for another. `post` pushes strips of A and B
   into the ring up. `launch` queues the kernels of strips that are on their way. `fetch` pulls tiles of C
   into the ring down. `land` drains what has come and sends it home. So both directions of the link and the
   kernels work at once.

   What a call costs beside its kernels, in microseconds of the host, if all operands are on the device and
   there is one tile and one panel: three pointer queries and two context switches 1; lane, plan, arena 0.5; a
   launch 2 to 2.5; the wait, from the last kernel's end, 3 to 4. */
#include "src/run/run.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/numbers.h"
#include "kernels/sliced.h"
#include "src/gpu/context.h"
#include "src/gpu/dma.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/run/address_table.h"
#include "src/run/launch.h"
#include "src/run/pipeline.h"

int64_t gpb_run_bytes(const gpb_call *call, const gpb_plan *plan)
{
    return gpb_plan_bytes(plan) + gpb_address_table_bytes(call, plan);
}

/* ---- stages */

static void next(gpb_stage *w)
{
    const gpb_move *move = gpb_schedule_next(&w->cursor);
    w->ended = !move;
    if (move) w->move = *move;
    w->member = w->row = w->col = w->product = 0;
}

gpb_stage gpb_stage_begin(const gpb_call *call, const gpb_plan *plan)
{
    gpb_stage w = { .cursor = gpb_schedule_begin(call, plan) };
    next(&w);
    return w;
}

void gpb_stage_advance(gpb_stage *w)
{
    w->moves++;
    w->tiles += gpb_stage_ends_tile(&w->move);
    next(w);
}

void gpb_stage_to_tile(gpb_stage *w, bool past)
{
    if (past) gpb_stage_advance(w);
    while (!w->ended && !gpb_stage_ends_tile(&w->move)) gpb_stage_advance(w);
}

/* ---- kernels */

/* True if the move's strip is on its way to the device. If the move writes C's buffer, the buffer must be
   free: its old contents are on their way home. */
static bool may_launch(const gpb_pipeline *f)
{
    const gpb_stage *w = &f->launch;
    if (f->post.moves <= w->moves || f->run.lane->up->moved < f->sent_by[w->moves % GPB_STAGE_AHEAD])
        return false;
    if (!f->home || !w->move.tile.rows) return true;
    return (!w->move.last || w->tiles - f->fetch.tiles < GPB_STAGE_AHEAD)
           && (w->move.panel[GPB_C] <= f->run.x[GPB_C].buffers || f->fetch.ended
               || f->fetch.move.panel[GPB_C] >= w->move.panel[GPB_C] - 1);
}

/* True if a kernel is launched for the move: it unlocks something, or its strip is packed, sliced or
   mirrored. */
static bool has_kernels(const gpb_run *r, const gpb_move *move)
{
    return move->tile.rows || gpb_kernel_table_guarded(r->plan->kernel)
           || (move->reads && (r->x[move->operand].packed || r->x[move->operand].ld));
}

/* Notes how the move's strip for this product comes. */
static void note_strip(gpb_pipeline *f, const gpb_run *r, const gpb_move *move, CUevent arrived)
{
    const enum gpb_place place = gpb_operand_comes(r, move) ? r->x[move->operand].place : GPB_PLACE_DEVICE;
    if (place == GPB_PLACE_HOST) f->staged_strip = true;
    else if (place != GPB_PLACE_DEVICE) f->direct_strip = arrived;
}

/* Makes the kernels wait for the strips that came over the link, and for the way home of what was in this
   buffer of C. */
static CUresult wait_for(gpb_pipeline *f, const gpb_stage *w)
{
    gpb_lane *lane = f->run.lane;
    const gpb_move *move = &w->move;
    CUresult result = CUDA_SUCCESS;
    CUevent arrived = lane->arrived[w->moves % GPB_STAGE_AHEAD];
    for (const gpb_run *r = &f->run; r; r = r->second) note_strip(f, r, move, arrived);
    if (has_kernels(&f->run, move) && lane->up->stream != f->run.stream) {
        /* A strip in the ring is queued only when it is packed, perhaps behind strips that were queued at
           once. An event recorded now is behind them all. */
        if (f->staged_strip) result = gpb_driver_record(f->driver, lane->made_in, arrived, lane->up->stream);
        else arrived = f->direct_strip;
        if (!result && arrived) result = f->driver->cuStreamWaitEvent(f->run.stream, arrived, 0);
        f->staged_strip = false;
        f->direct_strip = NULL;
    }
    if (!result && f->home && move->tile.rows && f->run.x[GPB_C].at_panel != move->panel[GPB_C]
        && move->panel[GPB_C] > f->run.x[GPB_C].buffers)
        result = f->driver->cuStreamWaitEvent(f->run.stream, lane->home[move->panel[GPB_C] % 2], 0);
    return result;
}

/* If a panel is not used any more, its buffer may be filled again once the kernels queued so far are done. */
static CUresult release(gpb_pipeline *f, const gpb_move *before)
{
    CUresult result = CUDA_SUCCESS;
    for (int x = 0; x < 2 && !f->launch.ended && !result; x++)
        if (before->panel[x] && f->launch.move.panel[x] != before->panel[x] && f->run.x[x].buffers > 1)
            result = gpb_driver_record(f->driver, f->run.lane->made_in,
                                       f->run.lane->freed[x][before->panel[x] % 2], f->run.stream);
    return result;
}

static CUresult launch(gpb_pipeline *f, bool *busy)
{
    gpb_stage *w = &f->launch;
    gpb_run *r = &f->run;
    CUresult result = CUDA_SUCCESS;
    while (!w->ended && !result && may_launch(f)) {
        const gpb_move before = w->move;
        const bool fetched = before.first && before.tile.rows && r->x[GPB_C].place == GPB_PLACE_ELSEWHERE
                             && r->call->beta != 0;
        result = wait_for(f, w);
        for (int64_t l = 0; fetched && l < before.tile.members && !result; l++)
            result = gpb_download_copy_c(f, &before, l, 0, before.tile.cols, true);
        if (!result) result = gpb_launch_move(r, &before, !f->run.plan->speculative || f->fallback_queued);
        if (!result && f->home && gpb_stage_ends_tile(&before) && r->lane->down->stream != r->stream)
            result = gpb_driver_record(f->driver, r->lane->made_in, r->lane->tile[w->tiles % GPB_STAGE_AHEAD],
                                       r->stream);
        if (result) break;
        if (!f->home && before.tile.rows) {
            r->progress->steps++;
            f->only = before;
        }
        gpb_stage_advance(w);
        if (!f->home && gpb_stage_ends_tile(&before)) {
            r->progress->tiles++;
            r->progress->steps = 0;
        }
        result = release(f, &before);
        *busy = true;
    }
    return result;
}

/* ---- the run */

/* Called when nothing can be done: helps with one queued copy, or pauses. If there are enough workers it
   first waits for `patience` turns, because a copy takes up to 50 us, in which the copy engines may run out
   of work. Then it does help, because workers may be kept from the cores: OpenBLAS's idle threads spin for
   134 ms without yielding, and a worker woken beside them waits for their time slice to end. If copies are
   small, a thread that had to help once helps sooner the next time: 64 copies of 32 KiB beside two such
   threads on two cores took 6.6 ms by the workers, 0.21 with help after 20 turns
   (tests/bench/results/nvidia-h200/evidence/spinners.md). */
static void idle(gpb_pipeline *f)
{
    gpb_lane *lane = f->run.lane;
    enum { LONG = 512, SMALL_JOB = 64 << 10 };
    f->idle++;
    if (f->staged && (gpb_crew_size() < GPB_CREW_FEW || f->idle > f->patience)
        && (gpb_staging_help(lane->down) || gpb_staging_help(lane->up))) {
        f->idle = 0;
        if (lane->up->job_bytes <= SMALL_JOB) f->patience /= 2;
    } else if (f->idle > LONG) {
        sched_yield();
    } else {
        __builtin_ia32_pause();
    }
}

static bool is_over(const gpb_pipeline *f)
{
    const gpb_staging *down = f->run.lane->down;
    return f->launch.ended && (!f->home || (f->fetch.ended && down->done == down->made));
}

static CUresult pump(gpb_pipeline *f)
{
    bool busy = false;
    CUresult result = gpb_upload_push(f, &busy);
    if (!result && f->staged) result = gpb_staging_send(f->run.lane->up, f->post.ended, &busy);
    if (!result) result = launch(f, &busy);
    if (!result) result = gpb_download_pull(f, &busy);
    if (!result && f->home) result = gpb_download_drain(f, &busy);
    gpb_download_commit(f, &busy);
    if (busy) f->idle = 0;
    else idle(f);
    return result;
}

/* The driver keeps the event until what it waits for has happened. */
CUresult gpb_run_follow(const gpb_lane *lane, CUstream stream, CUcontext context)
{
    const gpb_driver *driver = gpb_driver_get();
    CUcontext popped;
    CUevent event = NULL;
    CUresult result = context ? driver->cuCtxPushCurrent(context) : CUDA_SUCCESS;
    if (result || !context) return result;
    if (!gpb_context_records_graph() && !(result = driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)))
        result = driver->cuEventRecord(event, CU_STREAM_LEGACY);
    driver->cuCtxPopCurrent(&popped);
    if (event && !result) result = driver->cuStreamWaitEvent(stream, event, 0);
    if (event && !result) result = driver->cuStreamWaitEvent(lane->up->stream, event, 0);
    if (event) driver->cuEventDestroy(event);
    return result;
}

/* The operand may be in other contexts, each member in its own. The program's work there comes first, too. */
static CUresult follow_others(const gpb_run *r, const gpb_run_operand *x)
{
    CUcontext last = r->lane->device->context;
    CUresult result = CUDA_SUCCESS;
    for (int64_t l = 0; l < r->call->batch && x->place == GPB_PLACE_ELSEWHERE && !result; l++) {
        CUcontext context = gpb_place_context(gpb_matrix_member(&x->stored, l, r->element));
        if (context && context != last) result = gpb_run_follow(r->lane, r->stream, last = context);
        if (!x->stored.array) break;
    }
    return result;
}

/* Work that the program has queued for an operand on the device comes first, as it would before a kernel on
   the legacy stream. If there are only kernels to queue, and no other call whose kernels could run beside
   them, they go to the legacy stream itself. That saves two driver calls and the way from stream to
   stream. */
static CUresult follow_legacy(gpb_run *r)
{
    const gpb_driver *driver = gpb_driver_get();
    const gpb_call *call = r->call;
    const bool reads = gpb_call_multiplies(call), a = r->x[GPB_A].place == GPB_PLACE_DEVICE,
               b = r->x[GPB_B].place == GPB_PLACE_DEVICE;
    const bool c = r->x[GPB_C].place == GPB_PLACE_DEVICE;
    const bool elsewhere = r->x[GPB_A].place == GPB_PLACE_ELSEWHERE
                           || r->x[GPB_B].place == GPB_PLACE_ELSEWHERE
                           || r->x[GPB_C].place == GPB_PLACE_ELSEWHERE;
    CUresult result = CUDA_SUCCESS;
    if (!a && !b && !c && !elsewhere) return result;
    if (elsewhere && !(result = follow_others(r, &r->x[GPB_A])) && !(result = follow_others(r, &r->x[GPB_B])))
        result = follow_others(r, &r->x[GPB_C]);
    if (result || gpb_context_records_graph()) return result;
    if (c && (!reads || (a && b)) && !call->x[GPB_C].array && r->lane->alone) {
        r->stream = CU_STREAM_LEGACY;
        return CUDA_SUCCESS;
    }
    result = gpb_driver_record(driver, r->lane->made_in, r->lane->after, CU_STREAM_LEGACY);
    if (!result) result = driver->cuStreamWaitEvent(r->stream, r->lane->after, 0);
    return result || !elsewhere ? result : driver->cuStreamWaitEvent(r->lane->up->stream, r->lane->after, 0);
}

/* ---- the end of C in place */

/* Finds out which of the `count` guard words are at the level or above, for each member of the tile. */
static CUresult fetch_flags(const gpb_region *t, int level, const uint64_t *guard, int64_t stride,
                            uint64_t epoch, int64_t count, bool *flagged, int64_t apart)
{
    uint64_t *words = malloc((size_t)count * sizeof *words);
    CUresult result = words ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    const gpb_dma_shape panel = { .rows = count, .cols = 1, .ld = count,
                                  .element = sizeof *words, .uplo = 'G' };
    for (int64_t l = 0; l < t->members && !result; l++) {
        result = gpb_dma_copy_and_wait(&panel, guard + l * stride, words, true);
        for (int64_t i = 0; i < count; i++)
            flagged[l * apart + i] = gpb_guard_level(words[i], epoch) >= level;
    }
    free(words);
    return result;
}

/* Notes what the host needs to know to do the fallback kernel's work. */
static void explain(gpb_run *r, const gpb_region *t)
{
    const gpb_gemm_args *args = &r->last;
    const int64_t rows = gpb_plan_guards(r->plan->kernel, GPB_A, args->m),
                  cols = gpb_plan_guards(r->plan->kernel, GPB_B, args->n);
    bool *flagged = calloc((size_t)t->members, (size_t)(rows + cols) * sizeof *flagged);
    if (flagged
        && !fetch_flags(t, args->level, args->guard_a, args->stride_guard_a, args->epoch_a, rows, flagged,
                        rows + cols)
        && !fetch_flags(t, args->level, args->guard_b, args->stride_guard_b, args->epoch_b, cols,
                        flagged + rows, rows + cols))
        r->progress->flagged_blocks = flagged;
    else
        free(flagged);
}

/* Waits for all that is queued; tries once more if waiting itself fails. A driver that cannot wait at all
   must be given up, because kernels may still be at work on what the program looks at next. */
static CUresult wait(const gpb_pipeline *f, CUstream stream)
{
    CUresult result = f->driver->cuStreamSynchronize(stream);
    if (result && !gpb_driver_sticky(result)) result = f->driver->cuStreamSynchronize(stream);
    return result && !gpb_driver_sticky(result) ? CUDA_ERROR_UNKNOWN : result;
}

/* Waits, then launches the fallback kernels if a block turns out to be flagged. */
static CUresult end_in_place(gpb_pipeline *f, CUresult result)
{
    gpb_run *r = &f->run;
    gpb_progress *progress = r->progress;
    CUresult drained = wait(f, r->stream);
    progress->fell_back = *(volatile uint32_t *)r->lane->flagged != 0;
    if (f->run.plan->speculative && (progress->fell_back || drained) && !result) {
        result = gpb_launch_fallback(r, &f->only);
        if (result) progress->tiles = progress->steps = 0;
        CUresult again = wait(f, r->stream);
        if (!drained) drained = again;
    }
    if (progress->blocks_missing && progress->fell_back) {
        explain(r, f->run.plan->speculative ? &f->only.tile : &f->launch.move.tile);
    } else if (progress->blocks_missing) {
        /* No block is flagged, so there was nothing for the fallback to do. */
        progress->blocks_missing = false;
        progress->steps++;
    }
    return drained ? drained : result;
}

/* ---- the end of C at home */

/* After a failure: lets the crew finish the copies it has begun, so that it is known how much of C is home,
   and waits until nothing uses the rings. Returns the failure, or a worse one. */
static CUresult stop(gpb_pipeline *f, CUresult failure)
{
    gpb_lane *lane = f->run.lane;
    bool busy;
    for (; lane->down->done < lane->down->moved; gpb_download_commit(f, &busy))
        if (!gpb_staging_help(lane->down)) sched_yield();
    const CUresult stuck[] = { wait(f, lane->up->stream), wait(f, f->run.stream),
                               wait(f, lane->down->stream) };
    for (int i = 0; i < 3; i++)
        if (stuck[i]) {
            f->run.progress->undrained = !gpb_place_on_host(f->run.x[GPB_C].place);
            return stuck[i];
        }
    for (; !gpb_download_flagged(f) && lane->down->moved < lane->down->made
           && gpb_staging_chunk(lane->down, lane->down->moved)->direct;
         gpb_download_commit(f, &busy))
        gpb_staging_drain(lane->down);      /* the driver has brought these chunks home */
    return failure;
}

static CUresult end(gpb_pipeline *f, CUresult result)
{
    gpb_lane *lane = f->run.lane;
    gpb_progress *progress = f->run.progress;
    progress->bytes_up = (int64_t)lane->up->bytes;
    progress->bytes_down = (int64_t)lane->down->bytes;
    if (f->home) progress->fell_back = *(volatile uint32_t *)lane->flagged != 0;
    else result = end_in_place(f, result);
    if (result) result = stop(f, result);
    gpb_staging_end(lane->up);
    gpb_staging_end(lane->down);
    return result;
}

/* ---- the beginning */

/* Bytes of one job for the crew, chosen so that every core gets several. */
static size_t job_bytes(double bytes)
{
    return (size_t)clamp(bytes / (12 * (gpb_crew_size() + 1)), GPB_STAGING_MIN, GPB_STAGING_MAX);
}

static gpb_pipeline set_up(gpb_lane *lane, gpb_job *job)
{
    const gpb_call *call = job->call;
    const gpb_plan *plan = &job->plan;
    const gpb_facts *facts = job->facts;
    const bool reads = gpb_call_multiplies(call);
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k,
                 bytes = (double)gpb_call_element(call) * (double)call->batch;
    gpb_pipeline f = { .run = gpb_operand_begin(lane, job), .driver = gpb_driver_get() };
    f.home = facts->where[GPB_C].place != GPB_PLACE_DEVICE;
    f.staged = gpb_place_on_host(facts->where[GPB_C].place);
    for (int x = 0; x < GPB_C; x++) f.staged |= reads && gpb_where_is(facts, x, GPB_PLACE_HOST);
    f.post = f.launch = f.fetch = f.land = gpb_stage_begin(call, plan);
    gpb_stage_to_tile(&f.land, false);
    f.patience = 64;
    /* With one strip of each operand and one tile, nothing can overlap with the copies. One stream serves
       then, because a stream that waits for another costs 5 us. */
    bool one_tile = plan->kc >= call->k && plan->group >= call->batch;
    for (int x = 0; x < GPB_C; x++)
        one_tile &= min(plan->panel[x].extent, plan->panel[x].strip) >= gpb_call_extent(call, x);
    const CUstream stream = one_tile ? f.run.stream : NULL;
    gpb_staging_begin(lane->up, plan->crew, job_bytes((m + n) * k * bytes), stream);
    gpb_staging_begin(lane->down, plan->crew, job_bytes(m * n * bytes), stream);
    return f;
}

/* Queues the making of all of the operand of which `stored` has a triangle on the device. */
static CUresult mirror(const gpb_run *r, const gpb_call *stored)
{
    const enum gpb_operand x = gpb_call_mirrored(stored);
    const gpb_matrix *whole = &r->call->x[x];
    return gpb_operand_mirror(r, &stored->x[x], (CUdeviceptr)(uintptr_t)whole->base, whole->ld, stored->k,
                              stored->k);
}

/* stored: NULL, or the call of whose symmetric operand the job's call has all. */
static CUresult run_call(gpb_lane *lane, gpb_job *job, const gpb_call *stored)
{
    job->progress = (gpb_progress){ 0 };
    gpb_pipeline f = set_up(lane, job);
    const gpb_call other = gpb_call_second(job->call);
    gpb_run second;
    *lane->flagged = 0;
    CUresult result = follow_legacy(&f.run);
    if (!result && stored) result = mirror(&f.run, stored);
    if (gpb_call_apart(job->call) == 2) {
        second = gpb_operand_second(&f.run, &other);
        f.run.second = &second;
    }
    /* If C is in host memory, the host can finish the call, and the end of the program waits for that
       (gpu/gpu.c). */
    const bool brief = !gpb_place_on_host(job->facts->where[GPB_C].place);
    while (!result && !is_over(&f))
        result = !brief && gpb_gpu_leaving() ? CUDA_ERROR_NOT_PERMITTED : pump(&f);
    return end(&f, result);
}

CUresult gpb_run_job(gpb_lane *lane, gpb_job *job)
{
    const gpb_call *stored = job->call;
    const gpb_plan *plan = &job->plan;
    if (!plan->bytes_mirrored) return run_call(lane, job, NULL);
    const enum gpb_operand x = gpb_call_mirrored(stored);
    const uintptr_t end = (uintptr_t)lane->arena.at + (uintptr_t)(gpb_run_bytes(stored, plan)
                                                                  - plan->bytes_mirrored);
    const uintptr_t at = (end + GPB_PLAN_ALIGNED - 1) / GPB_PLAN_ALIGNED * GPB_PLAN_ALIGNED;
    const int64_t ld = gpb_plan_mirrored_ld(gpb_call_rows(stored, x), (int64_t)gpb_call_element(stored));
    const gpb_call whole = gpb_call_whole(stored, x, (const void *)at, ld);
    job->call = &whole;
    const CUresult result = run_call(lane, job, stored);
    job->call = stored;
    return result;
}

CUresult gpb_run_queue(gpb_lane *lane, const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                       const char **why)
{
    gpb_job job = { .call = call, .facts = facts, .plan = gpb_decide(call, facts, policy) };
    if (!job.plan.gpu) {
        *why = job.plan.why;
        return CUDA_SUCCESS;
    }
    gpb_run run = gpb_operand_begin(lane, &job);
    gpb_schedule_cursor cursor = gpb_schedule_begin(call, &job.plan);
    CUresult result = CUDA_SUCCESS;
    for (const gpb_move *move; !result && (move = gpb_schedule_next(&cursor));)
        result = gpb_launch_move(&run, move, true);
    return result;
}
