/* SPDX-License-Identifier: MIT */
/* See spans.h. The GPU's clock is another than the host's. But no event happens before it is recorded, and
   none after the call's end. Of the times that this leaves, spans have the earliest, which is right to a few
   microseconds if one of the events was recorded into an idle stream. */
#include "src/service/spans.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/service/clock.h"
#include "src/service/events.h"
#include "src/service/text.h"

enum { FEW = 32, MOST = 4096, STREAMS = 4 };

/* An event, and when it was recorded. */
typedef struct mark {
    CUevent event;
    double recorded_s;
} mark;

typedef struct span {
    mark begin, end;
    CUstream stream;
    const char *kind, *name;
    size_t bytes;
    bool whole;                              /* both events are recorded */
} span;

struct gpb_spans {
    gpb_spans_lane lane;
    span *list;
    int count, room;
    unsigned left_out;
    bool named[STREAMS];
};

static _Thread_local gpb_spans *current __attribute__((tls_model("initial-exec")));

void gpb_spans_begin(gpb_spans **of, const gpb_spans_lane *lane)
{
    if (!*of) *of = calloc(1, sizeof **of);
    current = *of;
    if (!current) return;
    current->lane = *lane;
    current->count = 0;
    current->left_out = 0;
}

void gpb_spans_forget(gpb_spans *of)
{
    for (int i = 0; of && i < of->room; i++) of->list[i].begin.event = of->list[i].end.event = NULL;
}

/* Room for one more. */
static bool grow(gpb_spans *of)
{
    if (of->count < of->room) return true;
    const int room = of->room ? 2 * of->room : FEW;
    span *list = room > MOST ? NULL : realloc(of->list, (size_t)room * sizeof *list);
    if (!list) return false;
    for (int i = of->room; i < room; i++) list[i] = (span){ 0 };
    of->list = list;
    of->room = room;
    return true;
}

static bool record(const gpb_spans *of, mark *at, CUstream stream)
{
    const gpb_driver *driver = gpb_driver_get();
    if (!at->event && driver->cuEventCreate(&at->event, CU_EVENT_DEFAULT)) return false;
    at->recorded_s = gpb_clock_s();
    return gpb_driver_record(driver, of->lane.made_in, at->event, stream) == CUDA_SUCCESS;
}

int gpb_spans_open(CUstream stream)
{
    gpb_spans *of = current;
    if (!of) return -1;
    if (!gpb_driver_get()->cuEventElapsedTime || !grow(of)) {
        of->left_out++;
        return -1;
    }
    span *x = &of->list[of->count];
    x->stream = stream;
    x->whole = false;
    return record(of, &x->begin, stream) ? of->count++ : -1;
}

void gpb_spans_close(int at, const char *kind, const char *name, size_t bytes)
{
    if (at < 0) return;
    span *x = &current->list[at];
    x->kind = kind;
    x->name = name;
    x->bytes = bytes;
    x->whole = record(current, &x->end, x->stream);
}

/* Seconds of the GPU's clock since the call's first event. False: not known, because the call has failed. */
static bool elapsed(const gpb_spans *of, const mark *at, double *seconds)
{
    float ms = 0;
    if (at != &of->list[0].begin
        && gpb_driver_get()->cuEventElapsedTime(&ms, of->list[0].begin.event, at->event))
        return false;
    *seconds = 1e-3 * (double)ms;
    return true;
}

static int stream_of(const gpb_spans *of, CUstream stream)
{
    const CUstream streams[] = { of->lane.kernels, of->lane.up, of->lane.down };
    for (int i = 0; i < STREAMS - 1; i++)
        if (streams[i] == stream) return i;
    return STREAMS - 1;
}

/* The number of a stream's track, which has its name when this returns. */
static int track_of(gpb_spans *of, CUstream stream)
{
    static const char *const names[STREAMS] = { "kernels", "to the GPU", "from the GPU", "default stream" };
    enum { LANES = 64 };
    const int which = stream_of(of, stream);
    const int track = GPB_EVENTS_TRACKS + (of->lane.device * LANES + of->lane.number) * STREAMS + which;
    char name[64];
    if (of->named[which]) return track;
    snprintf(name, sizeof name, "GPU %d, lane %d: %s", of->lane.device, of->lane.number, names[which]);
    gpb_events_name(track, name);
    of->named[which] = true;
    return track;
}

typedef struct times { double begin_s, end_s; } times;

static double larger(double x, double y) { return x > y ? x : y; }

/* Reads the events. Returns the host's time of the first. */
static double read_all(gpb_spans *of, times *at, double now_s)
{
    double first_s = of->list[0].begin.recorded_s, last_s = 0;
    for (int i = 0; i < of->count; i++) {
        span *x = &of->list[i];
        x->whole = x->whole && elapsed(of, &x->begin, &at[i].begin_s) && elapsed(of, &x->end, &at[i].end_s);
        if (!x->whole) continue;
        first_s = larger(first_s, x->begin.recorded_s - at[i].begin_s);
        first_s = larger(first_s, x->end.recorded_s - at[i].end_s);
        last_s = larger(last_s, at[i].end_s);
    }
    return first_s + last_s > now_s ? now_s - last_s : first_s;
}

static void tell(gpb_spans *of, const span *x, double begin_s, double end_s)
{
    char members[64];
    gpb_text text = { .at = members, .room = sizeof members - 1 };
    if (x->bytes) gpb_text_count(&text, "bytes", (long long)x->bytes);
    members[text.length] = 0;
    gpb_events_add_to(track_of(of, x->stream), x->kind, x->name, begin_s, end_s, members);
}

void gpb_spans_end(void)
{
    gpb_spans *of = current;
    current = NULL;
    if (!of) return;
    times *at = of->count ? malloc((size_t)of->count * sizeof *at) : NULL;
    const double first_s = at ? read_all(of, at, gpb_clock_s()) : 0;
    unsigned lost = of->left_out;
    for (int i = 0; i < of->count; i++) {
        if (at && of->list[i].whole) tell(of, &of->list[i], first_s + at[i].begin_s, first_s + at[i].end_s);
        else lost++;
    }
    if (lost) gpb_events_lose(lost);
    free(at);
}
