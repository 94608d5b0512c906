/* SPDX-License-Identifier: MIT */
/* Carrying out a plan: panels up, kernels, tiles of C home. */
#ifndef GPB_RUN_H
#define GPB_RUN_H

#include "dispatch/schedule.h"
#include "src/gpu/lanes.h"

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

/* Device memory that the plan needs in a lane's arena. */
int64_t gpb_run_bytes(const gpb_call *call, const gpb_plan *plan);
/* Computes C on the lane. On a failure *progress says what is home already; the rest of a host-resident C is untouched. */
CUresult gpb_run_plan(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, gpb_progress *progress);

#endif
