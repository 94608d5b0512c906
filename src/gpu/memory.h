/* SPDX-License-Identifier: MIT */
/* Device memory of the lanes: how much each gets, which wait, and what is given back. */
#ifndef GPB_MEMORY_H
#define GPB_MEMORY_H

#include "src/gpu/lanes.h"

/* Device memory that no call has used for this long is freed, because the program or another process may want
   it. Allocating it again costs 1.8 ms (28 GiB: H200). */
#define GPB_IDLE_NS INT64_C(2000000000)
/* Makes the lane's arena at least `bytes` large; the call touches no more of it, so what is kept behind them
   stays. Waits while calls that asked earlier are owed the room.
   False: more than the budget, out of memory, or the GPU was given up. */
bool gpb_memory_arena(gpb_lane *lane, int64_t bytes);
/* Makes the lane's counters. False: out of memory. */
bool gpb_memory_counters(gpb_lane *lane);
/* Starts the thread that frees what lanes have left idle for too long. gpb_lanes.sweeping is set already. */
void gpb_memory_sweep(void);

#endif
