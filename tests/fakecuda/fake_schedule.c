/* SPDX-License-Identifier: MIT */
/* When queued work runs: as late as a program may see, and in any order that CUDA's promises allow. CUDA
   promises order within a stream, events, and the NULL stream's order with blocking streams. Nothing else
   orders anything here. With FAKECUDA_ENGINE (fake_gate.c) work also runs early, beside what the program does
   meanwhile. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fakecuda/fakecuda.h"

enum { READY_LIMIT = 1024 };

/* Changes one of the `floats` floats of a row, and the other half of the double that it may be half of. */
static void spoil_number(char *row, uint64_t which, size_t floats)
{
    const size_t first = which & ~(uint64_t)1;
    for (size_t i = first; i < first + 2 && i < floats; i++) {
        float x;
        memcpy(&x, row + i * sizeof x, sizeof x);
        x = x > 0 ? -1e30f : 1e30f;
        memcpy(row + i * sizeof x, &x, sizeof x);
    }
}

/* A copy may name memory of any device, so the device is -1. */
static void run_copy(const gpb_fake_copy *copy)
{
    if (!copy->width || !copy->height)
        return;
    int64_t to_end = (int64_t)((copy->height - 1) * copy->to_pitch + copy->width);
    int64_t from_end = (int64_t)((copy->height - 1) * copy->from_pitch + copy->width);
    char *to = (char *)copy->to;
    const char *from = (const char *)copy->from;
    if (copy->to_device)
        to = gpb_fake_translate(-1, copy->to, 0, to_end, "a copy's destination");
    if (copy->from_device)
        from = gpb_fake_translate(-1, copy->from, 0, from_end, "a copy's source");
    for (size_t row = 0; row < copy->height; row++)
        memmove(to + row * copy->to_pitch, from + row * copy->from_pitch, copy->width);
    const int wrong = gpb_fake_options_get()->wrong;
    const bool home = gpb_fake_is_device_address((void *)copy->from)
                      && !gpb_fake_is_device_address((void *)copy->to);
    if (wrong && home && copy->width >= sizeof(float) && !gpb_fake_random((uint64_t)wrong)) {
        const size_t floats = copy->width / sizeof(float);
        spoil_number(to + gpb_fake_random(copy->height) * copy->to_pitch, gpb_fake_random(floats), floats);
    }
}

void gpb_fake_mark_release(gpb_fake_mark *mark)
{
    if (mark && --mark->references == 0)
        free(mark);
}

static void perform(const gpb_fake_op *op)
{
    switch (op->kind) {
    case GPB_FAKE_COPY: run_copy(&op->copy); break;
    case GPB_FAKE_SET:
        for (size_t row = 0; op->copy.width && row < op->copy.height; row++)
            memset(gpb_fake_translate(-1, op->copy.to + row * op->copy.to_pitch, 0, (int64_t)op->copy.width,
                                      "cuMemset"), op->value, op->copy.width);
        break;
    case GPB_FAKE_LAUNCH: gpb_fake_launch_run(op->launch); break;
    case GPB_FAKE_RECORD:
    case GPB_FAKE_WAIT: break;
    }
}

static void run_head(CUstream stream)
{
    gpb_fake_op *op = stream->head;
    if (!gpb_fake_lost())
        perform(op);
    if (op->kind == GPB_FAKE_RECORD) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        op->mark->seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
        op->mark->done = true;
    }
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    gpb_fake_mark_release(op->mark);
    free(op->launch);
    free(op->staged);
    free(op);
}

static bool ready(CUstream stream)
{
    const gpb_fake_op *op = stream->head;
    if (!op || (op->kind == GPB_FAKE_WAIT && !op->mark->done))
        return false;
    CUstream null_stream = stream->context->null_stream;
    if (stream->blocking)
        return !null_stream->head || null_stream->head->number > op->number;
    if (stream == null_stream)
        for (CUstream s = gpb_fake_streams; s; s = s->next)
            if (s->context == stream->context && s->blocking && s->head && s->head->number < op->number)
                return false;
    return true;
}

/* Marks the operations that must run: those of the stream up to that number, and all that they wait for. */
static void want(CUstream stream, uint64_t number)
{
    uint64_t last = 0;
    for (const gpb_fake_op *op = stream->head; op && op->number <= number; op = op->next)
        last = op->number;
    if (last <= stream->limit)
        return;
    stream->limit = last;
    for (const gpb_fake_op *op = stream->head; op && op->number <= last; op = op->next)
        if (op->kind == GPB_FAKE_WAIT && !op->mark->done)
            want(op->mark->stream, op->mark->number);
    CUstream null_stream = stream->context->null_stream;
    if (stream->blocking)
        want(null_stream, last);
    for (CUstream s = gpb_fake_streams; s && stream == null_stream; s = s->next)
        if (s->context == stream->context && s->blocking)
            want(s, last);
}

static void want_nothing(void)
{
    for (CUstream s = gpb_fake_streams; s; s = s->next)
        s->limit = 0;
}

enum choice { ANY, WANTED, UNWANTED };

/* Runs one ready operation of that choice, picked at random; false if there is none. */
static bool run_one(enum choice choice)
{
    CUstream list[READY_LIMIT];
    size_t count = 0;
    for (CUstream s = gpb_fake_streams; s && count < READY_LIMIT; s = s->next)
        if (ready(s) && (choice == ANY || (choice == WANTED) == (s->head->number <= s->limit)))
            list[count++] = s;
    if (count)
        run_head(list[gpb_fake_random(count)]);
    return count > 0;
}

static bool wanted_left(void)
{
    for (CUstream s = gpb_fake_streams; s; s = s->next)
        if (s->head && s->head->number <= s->limit)
            return true;
    return false;
}

static void sweep_destroyed(void)
{
    for (CUstream *link = &gpb_fake_streams; *link;) {
        CUstream s = *link;
        if (s->destroyed && !s->head && !s->dead) {
            *link = s->next;
            free(s);
        } else {
            link = &s->next;
        }
    }
}

/* Runs until all marked operations have run. Sometimes nothing else runs, sometimes everything else that can
   runs first, sometimes anything. */
static void run_wanted(void)
{
    static const enum choice choices[] = { WANTED, WANTED, ANY };
    uint64_t mood = gpb_fake_random(3);
    if (mood == 1)
        while (run_one(UNWANTED))
            ;
    while (wanted_left())
        if (!run_one(choices[mood]))
            gpb_fake_die("DEADLOCK: work is queued and none of it may run");
    sweep_destroyed();
}

void gpb_fake_finish_stream(CUstream stream)
{
    want_nothing();
    want(stream, UINT64_MAX);
    run_wanted();
}

void gpb_fake_finish_mark(const gpb_fake_mark *mark)
{
    want_nothing();
    if (!mark->done)
        want(mark->stream, mark->number);
    run_wanted();
}

void gpb_fake_finish_context(CUcontext context)
{
    want_nothing();
    for (CUstream s = gpb_fake_streams; s; s = s->next)
        if (s->context == context)
            want(s, UINT64_MAX);
    run_wanted();
}

void gpb_fake_run_some(void)
{
    for (uint64_t left = gpb_fake_random(4); left && run_one(ANY); left--)
        ;
    sweep_destroyed();
}

bool gpb_fake_run_next(void)
{
    const bool ran = run_one(ANY);
    sweep_destroyed();
    return ran;
}
