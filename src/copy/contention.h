/* SPDX-License-Identifier: MIT */
/* Whether the process is crowded: the host BLAS's threads have just worked, and look for more work for a while, each on a core of its own,
   which those that copy for the GPU then have to share with them. Where they leave cores enough it is not: fewer copy then. */
#ifndef GPB_CROWD_H
#define GPB_CROWD_H

#include <stdbool.h>

/* The host BLAS has computed with so many threads, its callers among them, in a process of so many cores. threads < 1: nobody knows; as if
   on all of them. */
void gpb_crowd_begin(int threads, int cores);
bool gpb_crowded(void);
/* Workers of the crew that may be awake, so that none shares a core with those threads: GPB_CROWD_ALL where there are none, and where they
   leave too few cores for that (gpb_crowded). At least 1. */
enum { GPB_CROWD_ALL = 1 << 16 };
int gpb_crowd_workers(void);

/* A call went to the host only because the process is crowded: it would have been `saved_s` quicker on the GPU; as things are it would have
   been slower there, by `lost` of each second. What calls so miss pays, some time, for a while of calls on the GPU come what may, in which
   the host's threads go to sleep: true, that begins with this one. */
bool gpb_crowd_missed(double saved_s, double lost);
/* It is that while: plan as if the process were not crowded. */
bool gpb_crowd_ending(void);

#endif
