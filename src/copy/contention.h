/* SPDX-License-Identifier: MIT */
/* Whether the process is crowded: the host BLAS's threads have just worked, and look for more work for a while, each on a core of its own,
   which those that copy for the GPU then have to share with them. Where they leave cores enough it is not: fewer copy then. */
#ifndef GPB_CONTENTION_H
#define GPB_CONTENTION_H

#include <stdbool.h>

/* The host BLAS has computed with so many threads, its callers among them, in a process of so many cores. threads < 1: nobody knows; as if
   on all of them. */
void gpb_contention_begin(int threads, int cores);
bool gpb_contention_is_high(void);
/* Workers of the crew that may be awake, so that none shares a core with those threads: GPB_CONTENTION_ALL_WORKERS where there are none, and where they
   leave too few cores for that (gpb_contention_is_high). At least 1. */
enum { GPB_CONTENTION_ALL_WORKERS = 1 << 16 };
int gpb_contention_workers(void);

/* A call went to the host only because the process is crowded: it would have been `saved_s` quicker on the GPU; as things are it would have
   been slower there, by `lost` of each second. What calls so miss pays, some time, for a while of calls on the GPU come what may, in which
   the host's threads go to sleep: true, that begins with this one. */
bool gpb_contention_missed(double saved_s, double lost);
/* It is that while: plan as if the process were not crowded. */
bool gpb_contention_is_draining(void);

#endif
