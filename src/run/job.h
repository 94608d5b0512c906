/* SPDX-License-Identifier: MIT */
/* A job is what one device computes of a call, how, and how far it has got. Today a call is one job. On
   several GPUs it will be several jobs, each restricted to some columns of C, so progress belongs to a job
   and not to the call. */
#ifndef GPB_JOB_H
#define GPB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"

/* How far C is committed. tiles: tiles of the schedule that are done, with the last of k. Of the next tile,
   if it goes home to the caller: members that are done, and columns of the member after them. If C is
   computed in place: steps, the panels of k that are in it already. */
typedef struct gpb_progress {
    int64_t tiles, members, cols, steps;
    int64_t bytes_up, bytes_down;
    bool undrained;              /* C is not in host memory, and queued work on it could not be waited for:
                                    its contents are unknown */
    bool fell_back;              /* flagged blocks were left to the plan's fallback */
    /* The fallback failed: beside `steps` panels, C has all of the next panel except the flagged blocks of
       GPB_GUARD rows and columns. flagged_blocks says which: for each member of the tile, the rows of blocks,
       then the columns. The receiver frees it; NULL: it could not be had. */
    bool blocks_missing, *flagged_blocks;
} gpb_progress;

typedef struct gpb_job {
    const gpb_call *call;
    const gpb_facts *facts;
    gpb_plan plan;
    gpb_progress progress;
} gpb_job;

#endif
