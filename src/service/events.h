/* SPDX-License-Identifier: MIT */
/* GPUBLAS_TRACE: what threads did and when, as a file in Chrome's format for traces, which Perfetto opens.
   Any thread may add at any time, and no lock is waited for: signal handlers may compute, and end the
   program. */
#ifndef GPB_EVENTS_H
#define GPB_EVENTS_H

#include "src/service/option.h"

/* From begin_s to end_s (gpb_clock_s) this thread did what `name` says. kind: call, start ... members: what
   else is known, as members of a JSON object ("\"m\": 5, ..."), or "". Only if gpb_option_traces(). */
void gpb_events_add(const char *kind, const char *name, double begin_s, double end_s, const char *members);
/* The same of a track of another kind: its number is GPB_EVENTS_TRACKS or more, above all numbers of
   threads. */
enum { GPB_EVENTS_TRACKS = 1 << 23 };
void gpb_events_add_to(int track, const char *kind, const char *name, double begin_s, double end_s,
                       const char *members);
void gpb_events_name(int track, const char *name);
/* So many events could not be noted. */
void gpb_events_lose(unsigned count);
/* A forked child has a file of its own if %p is in its name, else none. */
void gpb_events_in_child(void);

#endif
