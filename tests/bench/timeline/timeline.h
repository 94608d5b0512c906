/* SPDX-License-Identifier: MIT */
/* What shim.c notes of the driver's calls. One thread makes them (src/run/run.c); so it has no lock. */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIMELINE_CALLS = 1 << 16, TIMELINE_QUEUED = 4096 };

typedef struct timeline_call {
    const char *name;
    uint64_t begin, end;      /* the processor's cycles */
    size_t amount;            /* a copy's bytes; a kernel's blocks; 1: an event that had happened */
    void *stream;
    int event;                /* < 0: none */
    float gpu_begin_ms;      /* since timeline_restart: all before it on its stream was done; it was done */
    float gpu_end_ms;
} timeline_call;

__attribute__((visibility("default"))) const timeline_call *timeline_calls(int *made);
/* gpu: what takes the GPU's time is timed there, too. */
__attribute__((visibility("default"))) void timeline_restart(bool gpu);
/* Waits for these, and fills in their times. */
__attribute__((visibility("default"))) void timeline_gpu(void);

#endif
