/* SPDX-License-Identifier: MIT */
/* What the GPU does in a call, for GPUBLAS_TRACE: a span for each copy and each kernel, on a track for each
   stream. An event of CUDA is recorded before and behind what is queued, and read when the call ends. */
#ifndef GPB_SPANS_H
#define GPB_SPANS_H

#include "src/service/driver.h"

typedef struct gpb_spans gpb_spans;
/* Whose spans: device and lane, the context that the streams are of (gpb_driver_record), and the streams. */
typedef struct gpb_spans_lane {
    int device, number;
    unsigned long long made_in;
    CUstream kernels, up, down;
} gpb_spans_lane;

/* What this thread queues from here on is noted, until gpb_spans_end. *of: NULL at first, then kept for the
   lane's next call. Called only if gpb_option_traces(). */
void gpb_spans_begin(gpb_spans **of, const gpb_spans_lane *lane);
/* All that was queued has happened, unless the call has failed. Does nothing if nothing was begun. */
void gpb_spans_end(void);
/* The device was reset: what CUDA made for these spans is gone. */
void gpb_spans_forget(gpb_spans *of);

/* Around what goes into a stream. kind and name as gpb_events_add has them; bytes 0: no copy. Failures are no
   failures of the call. Without gpb_spans_begin these cost 2 ns. */
int gpb_spans_open(CUstream stream);
void gpb_spans_close(int span, const char *kind, const char *name, size_t bytes);

#endif
