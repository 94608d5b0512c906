/* SPDX-License-Identifier: MIT */
/* GPUBLAS_VERBOSE: one line a call. */
#ifndef GPB_TRACE_H
#define GPB_TRACE_H

#include "src/hub/offload.h"
#include "src/run/compute.h"

/* Operations of a call as BLAS counts them: an addition and a multiplication are two. */
double gpb_trace_flops(const gpb_call *call);
/* Opens a range for the call (ranges.h); 0: no profiler is attached. */
uint64_t gpb_trace_range(const gpb_call *call);
/* The call as an event of GPUBLAS_TRACE, from came_s to now. */
void gpb_trace_event(const gpb_host_call *record, const char *route, const gpb_outcome *out);
/* Writes the line. Its time is all that the caller waited for. route: host, gpu, gpu+host. */
void gpb_trace(const gpb_host_call *record, const char *route, const gpb_outcome *out);

#endif
