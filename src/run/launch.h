/* SPDX-License-Identifier: MIT */
/* From a move of the schedule to launches: the strip that has come is made ready, and what it unlocks is computed. */
#ifndef GPB_LAUNCH_H
#define GPB_LAUNCH_H

#include "src/run/operand.h"

/* Enqueues the move's kernels on the run's stream. guarded: also those for blocks of C that a SPLIT kernel leaves to others (plan.h, wide
   and fallback), whether there are such or not. */
CUresult gpb_launch_move(gpb_run *run, const gpb_move *move, bool guarded);
/* These alone, for a tile that was computed without them; its panels are still there. */
CUresult gpb_launch_fallback(gpb_run *run, const gpb_move *move);

#endif
