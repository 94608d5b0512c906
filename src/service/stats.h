/* SPDX-License-Identifier: MIT */
/* What the library has done in this process: the counters behind gpublas_stats. From any thread, without locks. */
#ifndef GPB_STATS_H
#define GPB_STATS_H

#include "include/gpublas.h"

/* Adds every field of *more: gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .host_calls = 1 }). */
void gpb_stats_add(const gpublas_stats_t *more);
/* One call more that went to the host: .calls = 1, .host_calls = 1, in half the time. */
void gpb_stats_host(void);
/* The sums so far. Each field is exact; fields of calls under way may be out of step with each other. */
void gpb_stats_read(gpublas_stats_t *stats);

#endif
