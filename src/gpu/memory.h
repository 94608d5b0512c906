/* SPDX-License-Identifier: MIT */
/* Device memory of the lanes: who gets how much, who waits, and what goes back. */
#ifndef GPB_MEMORY_H
#define GPB_MEMORY_H

#include "src/gpu/lanes.h"

/* Device memory that no call has used for so long goes back: the program, or another process, may want it. To have it again costs 1.8 ms
   (28 GiB: H200). */
#define GPB_IDLE_NS INT64_C(2000000000)
/* Makes the lane's arena at least `bytes` large; waits while calls that asked before have the room for it. False: not within the budget,
   out of memory, or the GPU is given up. */
bool gpb_memory_arena(gpb_lane *lane, int64_t bytes);
/* The lane's counters are there. False: out of memory. */
bool gpb_memory_counters(gpb_lane *lane);
/* Begins the thread that gives back what idle lanes have had for too long; gpb_lanes.sweeping is set already. */
void gpb_memory_sweep(void);

#endif
