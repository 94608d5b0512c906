/* SPDX-License-Identifier: MIT */
/* Belts; see staging.h. A call of the driver costs 1 to 4 us, and 12 when several threads make them at once (evidence/machine.md:
   copies of 256 KiB by 8 threads, 20 GB/s): so one thread makes them all, and loads that are neighbours in the ring and on the device go as
   one copy. */
#include "src/copy/staging.h"

#include <string.h>

#include "dispatch/numbers.h"

#define TOGETHER (2 << 20)           /* bytes of one copy of the driver's, made of several loads */
#define ALIGNED  256                 /* where a load begins, unless it follows the one before on the device too */

CUresult gpb_staging_ready(gpb_staging *belt, CUdevice device, size_t size)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    CUresult result = gpb_pinned_ready(&belt->pinned, device, size);
    belt->ring = belt->pinned.at, belt->size = size;
    belt->made_in = gpb_driver_context(driver);
    if (!result && !belt->own) result = driver->cuStreamCreate(&belt->own, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < GPB_STAGING_EVENTS && !result; i++)
        if (!belt->event[i]) result = driver->cuEventCreate(&belt->event[i], CU_EVENT_DISABLE_TIMING);
    return result;
}

void gpb_staging_forget(gpb_staging *belt)
{
    gpb_pinned_forget(&belt->pinned);
    belt->own = NULL;
    memset(belt->event, 0, sizeof belt->event);
}

void gpb_staging_free(gpb_staging *belt)
{
    gpb_pinned_free(&belt->pinned);
    belt->ring = NULL;
}

void gpb_staging_begin(gpb_staging *belt, bool crew, size_t job_bytes, CUstream stream)
{
    const bool few = !crew || gpb_crew_size() < GPB_CREW_FEW;
    belt->first = few ? GPB_STORE_STREAMING : GPB_STORE_DEMOTED;
    belt->later = few ? GPB_STORE_STREAMING : GPB_STORE_CACHED;
    belt->recorded = belt->passed = belt->head = belt->tail = belt->made = belt->packed = belt->moved = belt->done = belt->bytes = 0;
    belt->ready = 0;
    belt->job_bytes = job_bytes;
    belt->stream = stream ? stream : belt->own;
    belt->open = crew;
    if (crew) gpb_crew_begin(&belt->crew);
}

bool gpb_staging_help(gpb_staging *belt) { return belt->open && gpb_crew_help(&belt->crew); }

void gpb_staging_end(gpb_staging *belt)
{
    if (belt->open) gpb_crew_end(&belt->crew);
    belt->open = false;
}

/* The crew copies, some time; or it is done now. True: the crew. */
static bool copy_caller(gpb_staging *belt, const gpb_copy2d_job *job)
{
    if (belt->open && gpb_crew_post(&belt->crew, job)) return true;
    gpb_copy2d(job);
    return false;
}

/* ---- the ring */

static size_t bytes_of(const gpb_chunk *load) { return load->width * (size_t)load->cols; }

/* On the device, `next` begins where `load` ends, and both lie without gaps or in columns alike. */
static bool follows(const gpb_chunk *load, const gpb_chunk *next)
{
    if (next->after || (load->width == load->pitch) != (next->width == next->pitch)) return false;
    if (load->width != load->pitch && (load->width != next->width || load->pitch != next->pitch)) return false;
    return next->device == load->device + load->pitch * (size_t)load->cols;
}

/* A place for the load in the ring: not across its end, next to `before` if it follows that. False: there is no room now. */
static bool place(const gpb_staging *belt, gpb_chunk *load, const gpb_chunk *before)
{
    const size_t bytes = bytes_of(load);
    uint64_t at = belt->head;
    if (!before || before->direct || !follows(before, load)) at = (at + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (at % belt->size + bytes > belt->size) at = (at / belt->size + 1) * belt->size;
    if (at + bytes - belt->tail > belt->size) return false;
    load->at = at, load->end = at + bytes;
    return true;
}

static char *ring_at(const gpb_staging *belt, const gpb_chunk *load) { return belt->ring + load->at % belt->size; }

/* The next load in its place. False: there is no room now. */
static bool prepare(const gpb_staging *belt, gpb_chunk *load)
{
    if (belt->made - belt->done == GPB_STAGING_CHUNKS) return false;
    const gpb_chunk *before = belt->made > belt->done ? &belt->load[(belt->made - 1) % GPB_STAGING_CHUNKS] : NULL;
    if (load->cols == 1) load->pitch = load->width;      /* without gaps */
    if (!load->direct) return place(belt, load, before);
    load->at = load->end = belt->head;
    return true;
}

/* It takes its place. NULL: no room. */
static gpb_chunk *take(gpb_staging *belt, const gpb_chunk *wanted)
{
    gpb_chunk load = *wanted, *to = gpb_staging_chunk(belt, belt->made);
    if (!prepare(belt, &load)) return NULL;
    *to = load;
    return to;
}

static void forget(gpb_staging *belt) { belt->tail = gpb_staging_chunk(belt, belt->done)->end, belt->done++; }

/* ---- events */

static CUresult record(gpb_staging *belt, uint64_t upto)
{
    if (belt->recorded - belt->passed == GPB_STAGING_EVENTS) return CUDA_SUCCESS;      /* a later one will speak for it */
    const uint64_t slot = belt->recorded++ % GPB_STAGING_EVENTS;
    belt->upto[slot] = upto;
    return gpb_driver_record(gpb_driver_open(NULL), belt->made_in, belt->event[slot], belt->stream);
}

/* Loads whose copying by the engines is over. */
static CUresult pass(gpb_staging *belt, uint64_t *upto)
{
    *upto = 0;
    while (belt->passed < belt->recorded) {
        const uint64_t slot = belt->passed % GPB_STAGING_EVENTS;
        CUresult result = gpb_driver_open(NULL)->cuEventQuery(belt->event[slot]);
        if (result) return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
        *upto = belt->upto[slot];
        belt->passed++;
    }
    return CUDA_SUCCESS;
}

/* ---- up */

bool gpb_staging_push(gpb_staging *belt, const gpb_chunk *wanted)
{
    gpb_chunk *load = take(belt, wanted);
    if (!load) return false;
    load->copy.to = ring_at(belt, load);
    load->copy.target = load->end > belt->size ? belt->later : belt->first;
    load->jobs = copy_caller(belt, &load->copy);
    belt->head = load->end;
    belt->made++;
    return true;
}

/* One copy of the driver's, from the ring or into it. */
static CUresult copy(gpb_staging *belt, const gpb_chunk *load, size_t bytes, bool up)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    char *ring = ring_at(belt, load);
    belt->bytes += bytes;
    if (load->width == load->pitch)
        return up ? driver->cuMemcpyHtoDAsync(load->device, ring, bytes, belt->stream)
                  : driver->cuMemcpyDtoHAsync(ring, load->device, bytes, belt->stream);
    CUDA_MEMCPY2D shape = { .WidthInBytes = load->width, .Height = bytes / load->width };
    if (up) {
        shape.srcMemoryType = CU_MEMORYTYPE_HOST, shape.srcHost = ring, shape.srcPitch = load->width;
        shape.dstMemoryType = CU_MEMORYTYPE_DEVICE, shape.dstDevice = load->device, shape.dstPitch = load->pitch;
    } else {
        shape.srcMemoryType = CU_MEMORYTYPE_DEVICE, shape.srcDevice = load->device, shape.srcPitch = load->pitch;
        shape.dstMemoryType = CU_MEMORYTYPE_HOST, shape.dstHost = ring, shape.dstPitch = load->width;
    }
    return driver->cuMemcpy2DAsync(&shape, belt->stream);
}

/* The loads that are packed, neighbours together. */
static CUresult send_packed(gpb_staging *belt)
{
    CUresult result = CUDA_SUCCESS;
    while (belt->moved < belt->packed && !result) {
        const gpb_chunk *first = gpb_staging_chunk(belt, belt->moved), *last = first;
        size_t bytes = bytes_of(first);
        uint64_t next = belt->moved + 1;
        for (; next < belt->packed && bytes < TOGETHER; next++) {
            const gpb_chunk *load = gpb_staging_chunk(belt, next);
            if (load->at != last->end || load->at % belt->size == 0 || !follows(last, load)) break;
            bytes += bytes_of(load);
            last = load;
        }
        if (first->after) result = gpb_driver_open(NULL)->cuStreamWaitEvent(belt->stream, first->after, 0);
        if (!result) result = copy(belt, first, bytes, true);
        belt->moved = next;
        belt->ready -= bytes;
        if (!result) result = record(belt, next);
    }
    return result;
}

CUresult gpb_staging_send(gpb_staging *belt, bool all, bool *busy)
{
    uint64_t there;
    CUresult result = pass(belt, &there);
    while (!result && belt->done < there) forget(belt), *busy = true;
    /* No event was free for these. */
    if (!result && belt->passed == belt->recorded && belt->done < belt->moved) result = record(belt, belt->moved);
    for (gpb_chunk *load; belt->packed < belt->made; belt->packed++, *busy = true) {
        load = gpb_staging_chunk(belt, belt->packed);
        if (load->jobs && !gpb_crew_reap(&belt->crew)) break;
        belt->ready += bytes_of(load);
    }
    /* A copy costs as much of the driver's time as it takes 256 KiB to pass over the link: while others are on their way, more come. */
    const bool starved = belt->moved == belt->done, whole = all && belt->packed == belt->made;
    if (!result && belt->ready && (starved || whole || belt->ready >= GPB_STAGING_ENOUGH)) result = send_packed(belt);
    return result;
}

/* ---- down */

bool gpb_staging_has_room(const gpb_staging *belt, const gpb_chunk *wanted)
{
    gpb_chunk load = *wanted;
    return belt->recorded - belt->passed < GPB_STAGING_EVENTS && prepare(belt, &load);
}

CUresult gpb_staging_pull(gpb_staging *belt, const gpb_chunk *wanted)
{
    gpb_chunk *load = take(belt, wanted);
    if (!load->direct) load->copy.from = ring_at(belt, load);
    CUresult result = load->direct ? CUDA_SUCCESS : copy(belt, load, bytes_of(load), false);
    belt->head = load->end;
    belt->made++;
    return result ? result : record(belt, belt->made);
}

CUresult gpb_staging_arrived(gpb_staging *belt, bool *arrived)
{
    *arrived = false;
    if (belt->passed == belt->recorded) return CUDA_SUCCESS;
    CUresult result = gpb_driver_open(NULL)->cuEventQuery(belt->event[belt->passed % GPB_STAGING_EVENTS]);
    if (result) return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
    *arrived = true;
    return result;
}

void gpb_staging_drain(gpb_staging *belt)
{
    gpb_chunk *load = gpb_staging_chunk(belt, belt->moved);
    const int64_t fit = (int64_t)(belt->job_bytes / load->width), cols = fit ? fit : 1;
    load->jobs = 0;
    for (int64_t col = 0; col < load->cols && !load->direct && !load->lost; col += cols) {
        gpb_copy2d_job job = load->copy;
        job.from += (size_t)(col * job.ld_from) * job.element, job.to += (size_t)(col * job.ld_to) * job.element;
        job.cols = min(cols, load->cols - col);
        job.col0 += col;
        load->jobs += copy_caller(belt, &job);
    }
    belt->moved++, belt->passed++;
}

const gpb_chunk *gpb_staging_drained(gpb_staging *belt)
{
    if (belt->done == belt->moved) return NULL;
    gpb_chunk *load = gpb_staging_chunk(belt, belt->done);
    while (load->jobs && gpb_crew_reap(&belt->crew)) load->jobs--;
    if (load->jobs) return NULL;
    forget(belt);
    return load;
}
