/* SPDX-License-Identifier: MIT */
/* What shim.c notes of the driver's calls. One thread makes them (src/gpu_run.c); so it has no lock. */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stddef.h>
#include <stdint.h>

enum { TIMELINE_CALLS = 1 << 16 };

typedef struct timeline_call {
    const char *name;
    uint64_t begin, end;      /* the processor's cycles */
    size_t bytes;             /* of a copy; 1: an event that had happened */
} timeline_call;

__attribute__((visibility("default"))) const timeline_call *timeline_calls(int *made);
__attribute__((visibility("default"))) void timeline_restart(void);

#endif
