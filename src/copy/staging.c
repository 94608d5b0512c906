/* SPDX-License-Identifier: MIT */
/* Staging rings; see staging.h. A call of the driver costs 1 to 4 us, and 12 us when several threads make
   calls at once (evidence/machine.md: copies of 256 KiB by 8 threads, 20 GB/s). So one thread makes all of a
   ring's calls, and chunks that are neighbours in the ring and on the device are sent as one copy. */
#include "src/copy/staging.h"

#include <string.h>

#include "dispatch/numbers.h"
#include "src/service/spans.h"

#define TOGETHER (2 << 20)           /* bytes at which chunks are no longer joined to one copy */
#define ALIGNED  256                 /* bytes; where a chunk starts in the ring, unless it follows the one
                                        before on the device too */

CUresult gpb_staging_ready(gpb_staging *staging, CUdevice device, size_t size)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = gpb_pinned_ready(&staging->pinned, device, size);
    staging->ring = staging->pinned.at;
    staging->size = size;
    staging->made_in = gpb_driver_context(driver);
    if (!result && !staging->own) result = driver->cuStreamCreate(&staging->own, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < GPB_STAGING_EVENTS && !result; i++)
        if (!staging->event[i]) result = driver->cuEventCreate(&staging->event[i], CU_EVENT_DISABLE_TIMING);
    return result;
}

void gpb_staging_forget(gpb_staging *staging)
{
    gpb_pinned_forget(&staging->pinned);
    staging->own = NULL;
    memset(staging->event, 0, sizeof staging->event);
}

void gpb_staging_free(gpb_staging *staging)
{
    gpb_pinned_free(&staging->pinned);
    staging->ring = NULL;
}

void gpb_staging_begin(gpb_staging *staging, bool crew, size_t job_bytes, CUstream stream)
{
    const bool few = !crew || gpb_crew_size() < GPB_CREW_FEW;
    staging->first = few ? GPB_STORE_STREAMING : GPB_STORE_DEMOTED;
    staging->later = few ? GPB_STORE_STREAMING : GPB_STORE_CACHED;
    staging->recorded = staging->passed = 0;
    staging->head = staging->tail = 0;
    staging->made = staging->packed = staging->moved = staging->done = 0;
    staging->bytes = staging->ready = 0;
    staging->job_bytes = job_bytes;
    staging->stream = stream ? stream : staging->own;
    staging->open = crew;
    if (crew) gpb_crew_begin(&staging->crew);
}

bool gpb_staging_help(gpb_staging *staging) { return staging->open && gpb_crew_help(&staging->crew); }

void gpb_staging_end(gpb_staging *staging)
{
    if (staging->open) gpb_crew_end(&staging->crew);
    staging->open = false;
}

/* Lets the crew copy, some time later, or copies now. True: the crew. */
static bool copy_caller(gpb_staging *staging, const gpb_copy2d_job *job)
{
    if (staging->open && gpb_crew_post(&staging->crew, job)) return true;
    gpb_copy2d(job);
    return false;
}

/* ---- the ring */

static size_t bytes_of(const gpb_chunk *chunk) { return chunk->width * (size_t)chunk->cols; }

/* On the device `next` begins where `chunk` ends, and either both have no gaps, or both have the same
   columns. */
static bool follows(const gpb_chunk *chunk, const gpb_chunk *next)
{
    if (next->after || (chunk->width == chunk->pitch) != (next->width == next->pitch)) return false;
    const bool alike = chunk->width == next->width && chunk->pitch == next->pitch;
    if (chunk->width != chunk->pitch && !alike) return false;
    return next->device == chunk->device + chunk->pitch * (size_t)chunk->cols;
}

/* Finds a place in the ring for the chunk: not across the ring's end, and next to `before` if it follows that
   one. False: no room now. */
static bool place(const gpb_staging *staging, gpb_chunk *chunk, const gpb_chunk *before)
{
    const size_t bytes = bytes_of(chunk);
    uint64_t at = staging->head;
    if (!before || before->direct || !follows(before, chunk)) at = (at + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (at % staging->size + bytes > staging->size) at = (at / staging->size + 1) * staging->size;
    if (at + bytes - staging->tail > staging->size) return false;
    chunk->at = at;
    chunk->end = at + bytes;
    return true;
}

static char *ring_at(const gpb_staging *staging, const gpb_chunk *chunk)
{
    return staging->ring + chunk->at % staging->size;
}

/* Completes the next chunk with its place. False: no room now. */
static bool prepare(const gpb_staging *staging, gpb_chunk *chunk)
{
    if (staging->made - staging->done == GPB_STAGING_CHUNKS) return false;
    const bool is_first = staging->made == staging->done;
    const gpb_chunk *before = is_first ? NULL : &staging->chunk[(staging->made - 1) % GPB_STAGING_CHUNKS];
    if (chunk->cols == 1) chunk->pitch = chunk->width;      /* no gaps */
    if (!chunk->direct) return place(staging, chunk, before);
    chunk->at = chunk->end = staging->head;
    return true;
}

/* Gives the chunk its place. NULL: no room now. */
static gpb_chunk *take(gpb_staging *staging, const gpb_chunk *wanted)
{
    gpb_chunk chunk = *wanted, *to = gpb_staging_chunk(staging, staging->made);
    if (!prepare(staging, &chunk)) return NULL;
    *to = chunk;
    return to;
}

static void forget(gpb_staging *staging)
{
    staging->tail = gpb_staging_chunk(staging, staging->done)->end;
    staging->done++;
}

/* ---- events */

static CUresult record(gpb_staging *staging, uint64_t upto)
{
    /* No event is free: a later one will cover this. */
    if (staging->recorded - staging->passed == GPB_STAGING_EVENTS) return CUDA_SUCCESS;
    const uint64_t slot = staging->recorded++ % GPB_STAGING_EVENTS;
    staging->upto[slot] = upto;
    return gpb_driver_record(gpb_driver_get(), staging->made_in, staging->event[slot], staging->stream);
}

/* *upto: chunks that the copy engines have copied, by the last event that has happened; 0: no event has. */
static CUresult pass(gpb_staging *staging, uint64_t *upto)
{
    *upto = 0;
    while (staging->passed < staging->recorded) {
        const uint64_t slot = staging->passed % GPB_STAGING_EVENTS;
        CUresult result = gpb_driver_get()->cuEventQuery(staging->event[slot]);
        if (result) return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
        *upto = staging->upto[slot];
        staging->passed++;
    }
    return CUDA_SUCCESS;
}

/* ---- up */

bool gpb_staging_push(gpb_staging *staging, const gpb_chunk *wanted)
{
    gpb_chunk *chunk = take(staging, wanted);
    if (!chunk) return false;
    chunk->copy.to = ring_at(staging, chunk);
    chunk->copy.target = chunk->end > staging->size ? staging->later : staging->first;
    chunk->jobs = copy_caller(staging, &chunk->copy);
    staging->head = chunk->end;
    staging->made++;
    return true;
}

static CUresult queue_copy(gpb_staging *staging, const gpb_chunk *chunk, size_t bytes, bool up)
{
    const gpb_driver *driver = gpb_driver_get();
    char *ring = ring_at(staging, chunk);
    if (chunk->width == chunk->pitch)
        return up ? driver->cuMemcpyHtoDAsync(chunk->device, ring, bytes, staging->stream)
                  : driver->cuMemcpyDtoHAsync(ring, chunk->device, bytes, staging->stream);
    const size_t width = chunk->width, pitch = chunk->pitch;
    const CUDA_MEMCPY2D to_device = {
        .WidthInBytes = width, .Height = bytes / width,
        .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = ring, .srcPitch = width,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = chunk->device, .dstPitch = pitch };
    const CUDA_MEMCPY2D to_ring = {
        .WidthInBytes = width, .Height = bytes / width,
        .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = chunk->device, .srcPitch = pitch,
        .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = ring, .dstPitch = width };
    return driver->cuMemcpy2DAsync(up ? &to_device : &to_ring, staging->stream);
}

/* Starts one copy by the driver, from the ring or into it. */
static CUresult copy(gpb_staging *staging, const gpb_chunk *chunk, size_t bytes, bool up)
{
    const int span = gpb_spans_open(staging->stream);
    const CUresult result = queue_copy(staging, chunk, bytes, up);
    staging->bytes += bytes;
    gpb_spans_close(span, "link", up ? "to the GPU" : "from the GPU", bytes);
    return result;
}

/* Sends the packed chunks, and joins neighbours to one copy. */
static CUresult send_packed(gpb_staging *staging)
{
    CUresult result = CUDA_SUCCESS;
    while (staging->moved < staging->packed && !result) {
        const gpb_chunk *first = gpb_staging_chunk(staging, staging->moved), *last = first;
        size_t bytes = bytes_of(first);
        uint64_t next = staging->moved + 1;
        for (; next < staging->packed && bytes < TOGETHER; next++) {
            const gpb_chunk *chunk = gpb_staging_chunk(staging, next);
            if (chunk->at != last->end || chunk->at % staging->size == 0 || !follows(last, chunk)) break;
            bytes += bytes_of(chunk);
            last = chunk;
        }
        if (first->after) result = gpb_driver_get()->cuStreamWaitEvent(staging->stream, first->after, 0);
        if (!result) result = copy(staging, first, bytes, true);
        staging->moved = next;
        staging->ready -= bytes;
        if (!result) result = record(staging, next);
    }
    return result;
}

CUresult gpb_staging_send(gpb_staging *staging, bool all, bool *busy)
{
    uint64_t there;
    CUresult result = pass(staging, &there);
    while (!result && staging->done < there) {
        forget(staging);
        *busy = true;
    }
    /* No event was free when these were sent. */
    const bool unrecorded = staging->passed == staging->recorded && staging->done < staging->moved;
    if (!result && unrecorded) result = record(staging, staging->moved);
    for (; staging->packed < staging->made; staging->packed++) {
        const gpb_chunk *chunk = gpb_staging_chunk(staging, staging->packed);
        if (chunk->jobs && !gpb_crew_reap(&staging->crew)) break;
        staging->ready += bytes_of(chunk);
        *busy = true;
    }
    /* A copy costs as much of the driver's time as the link takes for 256 KiB. So while others are on their
       way, wait for more. */
    const bool starved = staging->moved == staging->done, whole = all && staging->packed == staging->made;
    const bool sends = starved || whole || staging->ready >= GPB_STAGING_ENOUGH;
    if (!result && staging->ready && sends) result = send_packed(staging);
    return result;
}

/* ---- down */

bool gpb_staging_has_room(const gpb_staging *staging, const gpb_chunk *wanted)
{
    gpb_chunk chunk = *wanted;
    return staging->recorded - staging->passed < GPB_STAGING_EVENTS && prepare(staging, &chunk);
}

CUresult gpb_staging_pull(gpb_staging *staging, const gpb_chunk *wanted)
{
    gpb_chunk *chunk = take(staging, wanted);
    if (!chunk->direct) chunk->copy.from = ring_at(staging, chunk);
    CUresult result = chunk->direct ? CUDA_SUCCESS : copy(staging, chunk, bytes_of(chunk), false);
    staging->head = chunk->end;
    staging->made++;
    return result ? result : record(staging, staging->made);
}

CUresult gpb_staging_arrived(gpb_staging *staging, bool *arrived)
{
    *arrived = false;
    if (staging->passed == staging->recorded) return CUDA_SUCCESS;
    const CUevent next = staging->event[staging->passed % GPB_STAGING_EVENTS];
    const CUresult result = gpb_driver_get()->cuEventQuery(next);
    if (result) return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
    *arrived = true;
    return result;
}

void gpb_staging_drain(gpb_staging *staging)
{
    gpb_chunk *chunk = gpb_staging_chunk(staging, staging->moved);
    const int64_t fit = (int64_t)(staging->job_bytes / chunk->width), cols = fit ? fit : 1;
    chunk->jobs = 0;
    for (int64_t col = 0; col < chunk->cols && !chunk->direct && !chunk->lost; col += cols) {
        gpb_copy2d_job job = chunk->copy;
        job.from += (size_t)(col * job.ld_from) * job.element;
        job.to += (size_t)(col * job.ld_to) * job.element;
        job.cols = min(cols, chunk->cols - col);
        job.col0 += col;
        chunk->jobs += copy_caller(staging, &job);
    }
    staging->moved++;
    staging->passed++;
}

const gpb_chunk *gpb_staging_drained(gpb_staging *staging)
{
    if (staging->done == staging->moved) return NULL;
    gpb_chunk *chunk = gpb_staging_chunk(staging, staging->done);
    while (chunk->jobs && gpb_crew_reap(&staging->crew)) chunk->jobs--;
    if (chunk->jobs) return NULL;
    forget(staging);
    return chunk;
}
