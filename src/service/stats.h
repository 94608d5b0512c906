/* SPDX-License-Identifier: MIT */
/* Counters of what the library has done in this process, for gpublas_stats. Any thread may use them, without
   locks. */
#ifndef GPB_STATS_H
#define GPB_STATS_H

#include "include/gpublas.h"

/* Threads add to different cache lines, because two that add to one line wait 50 ns for each other. There are
   so many of each counter, and this is the thread's own. */
enum { GPB_STATS_SHARDS = 16 };
unsigned gpb_stats_shard(void);

/* Adds every field of *more: gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .host_calls = 1 }). */
void gpb_stats_add(const gpublas_stats_t *more);
/* Counts one call that went to the host: as .calls = 1, .host_calls = 1, in half the time. */
void gpb_stats_host(void);
/* Returns the sums so far. Each field is exact, but the fields may be out of step with each other while calls
   run. */
void gpb_stats_read(gpublas_stats_t *stats);

#endif
