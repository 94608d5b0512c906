/* SPDX-License-Identifier: MIT */
/* Streams, events and copies: what a call puts into a queue. Nothing runs here, because fake_schedule.c
   decides when. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

CUstream gpb_fake_streams;
static uint64_t last_number;

/* By their addresses: a program has hundreds, and asks for one in most calls. In one list the search was an
   eighth of LAPACK's suite. */
enum { EVENT_LISTS = 1024 };
static CUevent events[EVENT_LISTS];

/* malloc's addresses are multiples of 16, and an event takes three of these. */
static CUevent *list_of(CUevent event) { return &events[(uintptr_t)event / 16 % EVENT_LISTS]; }

static void *fresh(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        gpb_fake_die("no memory");
    return memory;
}

CUstream gpb_fake_stream_new(CUcontext context, bool blocking)
{
    CUstream stream = fresh(sizeof *stream);
    stream->context = context;
    stream->blocking = blocking;
    stream->next = gpb_fake_streams;
    gpb_fake_streams = stream;
    return stream;
}

CUstream gpb_fake_stream_find(CUstream handle)
{
    if (!handle || handle == CU_STREAM_LEGACY) {
        gpb_fake_check_legacy();
        return gpb_fake_current()->null_stream;
    }
    for (CUstream s = gpb_fake_streams; s; s = s->next)
        if (s == handle) {
            if (s->dead)
                gpb_fake_stale("a stream");
            return s->destroyed ? NULL : s;
        }
    return NULL;
}

/* A stream that the current context may put work into. */
static CUstream own_stream(CUstream handle)
{
    CUstream stream = gpb_fake_stream_find(handle);
    return stream && stream->context == gpb_fake_current() ? stream : NULL;
}

static CUevent find_event(CUevent event)
{
    CUevent e = *list_of(event);
    while (e && e != event)
        e = e->next;
    if (e && e->dead)
        gpb_fake_stale("an event");
    return e && !e->dead ? e : NULL;
}

static void drop(CUstream stream)
{
    for (gpb_fake_op *op; (op = stream->head);) {
        stream->head = op->next;
        if (op->mark)
            op->mark->done = true;       /* another context's stream may wait for it */
        gpb_fake_mark_release(op->mark);
        free(op->launch);
        free(op->staged);
        free(op);
    }
    stream->tail = NULL;
}

/* The handles stay allocated, so that no other handle gets their addresses. */
void gpb_fake_stream_reset(CUcontext context)
{
    for (CUstream s = gpb_fake_streams; s; s = s->next)
        if (s->context == context && !s->dead) {
            drop(s);
            s->destroyed = s->dead = true;
        }
    for (int i = 0; i < EVENT_LISTS; i++)
        for (CUevent e = events[i]; e; e = e->next)
            e->dead |= e->context == context;
}

gpb_fake_op *gpb_fake_push(CUstream stream, enum gpb_fake_kind kind)
{
    gpb_fake_op *op = fresh(sizeof *op);
    op->kind = kind;
    op->number = ++last_number;
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    return stream->tail = op;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && flags > CU_STREAM_NON_BLOCKING)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *stream = gpb_fake_stream_new(gpb_fake_current(), flags != CU_STREAM_NON_BLOCKING);
    return gpb_fake_leave(__func__, r);
}

/* As in CUDA: returns at once, and queued work still runs at some time. */
CUresult cuStreamDestroy(CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    if (!r && (!stream || stream == stream->context->null_stream))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r) {
        stream->destroyed = true;
        gpb_fake_run_some();
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    if (!r && !stream)
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        gpb_fake_finish_stream(stream);
    return gpb_fake_leave(__func__, r);
}

CUresult cuStreamQuery(CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    if (!r && !stream)
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r) {
        gpb_fake_run_some();
        r = stream->head ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    if (!r)
        r = flags > 1                       ? CUDA_ERROR_INVALID_VALUE
            : !stream || !find_event(event) ? CUDA_ERROR_INVALID_HANDLE
                                            : CUDA_SUCCESS;
    if (!r && event->mark) {             /* an event that was never recorded delays nothing */
        gpb_fake_push(stream, GPB_FAKE_WAIT)->mark = event->mark;
        event->mark->references++;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && flags > 7)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        CUevent e = fresh(sizeof *e);
        e->context = gpb_fake_current();
        e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
        e->next = *list_of(e);
        *event = *list_of(e) = e;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventDestroy(CUevent event)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUevent *link = list_of(event);
    while (!r && *link && *link != event)
        link = &(*link)->next;
    if (!r && (!*link || !find_event(event)))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r) {
        *link = event->next;
        gpb_fake_mark_release(event->mark);
        free(event);
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    if (!r && (!stream || !find_event(event) || event->context != stream->context))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r) {
        gpb_fake_op *op = gpb_fake_push(stream, GPB_FAKE_RECORD);
        op->mark = fresh(sizeof *op->mark);
        *op->mark = (gpb_fake_mark){ .references = 2, .stream = stream, .number = op->number };
        gpb_fake_mark_release(event->mark);
        event->mark = op->mark;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !find_event(event))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r && event->mark)
        gpb_fake_finish_mark(event->mark);
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventQuery(CUevent event)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !find_event(event))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r && event->mark) {
        gpb_fake_run_some();
        r = event->mark->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r
        && (!find_event(from) || !find_event(to) || !from->mark || !to->mark || !from->timed || !to->timed))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r && (!from->mark->done || !to->mark->done))
        r = CUDA_ERROR_NOT_READY;
    if (!r)
        *milliseconds = (float)((to->mark->seconds - from->mark->seconds) * 1e3);
    return gpb_fake_leave(__func__, r);
}

/* True if CUDA knows the host address, so that a copy with it is asynchronous. */
static bool registered(CUdeviceptr at) { return gpb_fake_block_find(at) != NULL; }

/* Queues a copy as CUDA would: on return, pageable memory has been read (into the driver's own buffer) or
   written. */
static CUresult copy_async(gpb_fake_copy copy, CUstream handle)
{
    CUstream stream = own_stream(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!copy.width || !copy.height)
        return CUDA_SUCCESS;
    if ((!copy.to_device && gpb_fake_is_device_address((void *)copy.to)) ||
        (!copy.from_device && gpb_fake_is_device_address((void *)copy.from)))
        return CUDA_ERROR_INVALID_VALUE;
    copy.to_device |= registered(copy.to);          /* pinned memory is bounds-checked, too */
    copy.from_device |= registered(copy.from);
    void *staged = NULL;
    if (!copy.from_device) {
        staged = fresh(copy.width * copy.height);
        for (size_t row = 0; row < copy.height; row++)
            memcpy((char *)staged + row * copy.width, (char *)copy.from + row * copy.from_pitch, copy.width);
        copy.from = (CUdeviceptr)staged;
        copy.from_pitch = copy.width;
    }
    gpb_fake_op *op = gpb_fake_push(stream, GPB_FAKE_COPY);
    op->copy = copy;
    op->staged = staged;
    if (!copy.to_device)
        gpb_fake_finish_stream(stream);
    return CUDA_SUCCESS;
}

static gpb_fake_copy to_device(CUdeviceptr to, const void *from, size_t bytes)
{
    return (gpb_fake_copy){ true, false, to, (CUdeviceptr)from, bytes, bytes, bytes, 1 };
}

static gpb_fake_copy to_host(void *to, CUdeviceptr from, size_t bytes)
{
    return (gpb_fake_copy){ false, true, (CUdeviceptr)to, from, bytes, bytes, bytes, 1 };
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = copy_async(to_device(to, from, bytes), stream);
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = copy_async(to_host(to, from, bytes), stream);
    return gpb_fake_leave(__func__, r);
}

static CUresult copy_now(gpb_fake_copy copy)
{
    CUresult r = copy_async(copy, NULL);
    if (!r)
        gpb_fake_finish_stream(gpb_fake_current()->null_stream);
    return r;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = copy_now(to_device(to, from, bytes));
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = copy_now(to_host(to, from, bytes));
    return gpb_fake_leave(__func__, r);
}

/* One side of a 2D copy: its address, and whether it must be device memory. False if the type or the pitch is
   not allowed. */
static bool side(CUmemorytype type, const void *host, CUdeviceptr *at, bool *device)
{
    *device = type == CU_MEMORYTYPE_DEVICE || (type == CU_MEMORYTYPE_UNIFIED && registered(*at));
    if (type == CU_MEMORYTYPE_HOST)
        *at = (CUdeviceptr)host;
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

static bool pitch_allowed(size_t pitch, size_t x, const CUDA_MEMCPY2D *p)
{
    return pitch <= 2147483647 && (pitch >= x + p->WidthInBytes || (pitch == 0 && p->Height <= 1 && x == 0));
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *p, CUstream stream)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    gpb_fake_copy copy = { 0 };
    if (!r) {
        copy = (gpb_fake_copy){ .to = p->dstDevice, .from = p->srcDevice, .to_pitch = p->dstPitch,
                                .from_pitch = p->srcPitch, .width = p->WidthInBytes, .height = p->Height };
        if (!side(p->dstMemoryType, p->dstHost, &copy.to, &copy.to_device) ||
            !side(p->srcMemoryType, p->srcHost, &copy.from, &copy.from_device) ||
            !pitch_allowed(p->dstPitch, p->dstXInBytes, p) || !pitch_allowed(p->srcPitch, p->srcXInBytes, p))
            r = CUDA_ERROR_INVALID_VALUE;
    }
    if (!r) {
        copy.to += p->dstY * p->dstPitch + p->dstXInBytes;
        copy.from += p->srcY * p->srcPitch + p->srcXInBytes;
        r = copy_async(copy, stream);
    }
    return gpb_fake_leave(__func__, r);
}

/* height rows of so many bytes */
static CUresult set(CUdeviceptr to, size_t pitch, unsigned char value, size_t bytes, size_t height,
                    CUstream handle)
{
    CUstream stream = gpb_fake_stream_find(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    gpb_fake_op *op = gpb_fake_push(stream, GPB_FAKE_SET);
    op->copy = (gpb_fake_copy){ .to = to, .to_pitch = pitch, .width = bytes, .height = height };
    op->value = value;
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    return gpb_fake_leave(__func__, r ? r : set(to, 0, value, bytes, 1, NULL));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    return gpb_fake_leave(__func__, r ? r : set(to, 0, value, bytes, 1, stream));
}

/* Of words whose bytes are all the same. */
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && (value != (value & 0xff) * 0x01010101u || to % 4 || (height > 1 && pitch % 4)))
        r = CUDA_ERROR_INVALID_VALUE;
    return gpb_fake_leave(__func__, r ? r : set(to, pitch, (unsigned char)value, 4 * width, height, stream));
}
