/* SPDX-License-Identifier: MIT */
/* A job: what one device computes of a call, how, and how far it has got. A call is one job today. On several GPUs it will be several, each
   a call restricted to some columns of C, so progress is a job's and not the call's. */
#ifndef GPB_JOB_H
#define GPB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"

/* How far C is committed: tiles of the schedule (with the last of k) wholly done; of the next one, if it goes home to the caller, whole
   members and of the member after these columns; if C is computed in place, panels of k that are in it already. */
typedef struct gpb_progress {
    int64_t tiles, members, cols, steps;
    int64_t bytes_up, bytes_down;
    bool adrift;                 /* C is not in host memory, and what was queued for it could not be waited for: what it holds is unknown */
    bool fell_back;               /* blocks that FP16 slices would not do justice to were left to the plan's stand-in */
    /* The stand-in failed: C has, beside `steps` panels, all of the next one but the blocks of GPB_GUARD rows and columns that are marked.
       marks (to be freed; NULL: could not be had): for each member of the tile, of rows of blocks, then of columns. */
    bool torn, *marks;
} gpb_progress;

typedef struct gpb_job {
    const gpb_call *call;
    const gpb_facts *facts;
    gpb_plan plan;
    gpb_progress progress;
} gpb_job;

#endif
