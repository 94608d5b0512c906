/* SPDX-License-Identifier: MIT */
/* From a move of the schedule to launches: prepares the strip that has come and computes what it unlocks. */
#ifndef GPB_LAUNCH_H
#define GPB_LAUNCH_H

#include "src/run/operand.h"

/* Enqueues the move's kernels on the run's stream. with_fallback: also the wide and fallback kernels (plan.h)
   for blocks that a SLICED kernel may have left, whether or not there are any. */
CUresult gpb_launch_move(gpb_run *run, const gpb_move *move, bool with_fallback);
/* Enqueues only those, for a tile that was computed without them. Its panels are still there. */
CUresult gpb_launch_fallback(gpb_run *run, const gpb_move *move);

#endif
