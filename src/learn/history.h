/* SPDX-License-Identifier: MIT */
/* What the GPU could have saved in earlier runs of this program, and in this one. Kept beside the
   calibration, in a file of its own, because it is read before it is known which GPU there is. */
#ifndef GPB_HISTORY_H
#define GPB_HISTORY_H

#include <stdbool.h>

#include "dispatch/start.h"

/* The library is being loaded. eager: the user wants the GPU started now. So is it for a program that is
   known to gain by that. */
void gpb_history_load(bool eager);
/* The program's first call of BLAS. If a start at load did not come, a start now may be known to gain. */
void gpb_history_begin(void);
/* Earlier runs of this program; all zero until the file is read. */
gpb_history gpb_history_known(void);
/* The GPU saved that on a call, or would have if it had been started. */
void gpb_history_note(double saved_s, bool on_gpu);
/* The program has forked, or changed what CUDA reads of the environment. A GPU that was started at load would
   be lost to the child, or might be the wrong one. */
void gpb_history_note_loud(void);
/* What starting the GPU takes, seconds, or 0 if it is not known. active: the program uses a GPU already. */
double gpb_history_start_s(bool active);
/* The same of the host's work that is lost meanwhile. */
double gpb_history_lost_s(bool active);
/* A call on the host took that much longer than predicted while the GPU was being started. */
void gpb_history_lose(double more_s);
/* The GPU was started, and that took so long. */
void gpb_history_started(bool active, double took_s);
/* This process's run is not kept. It is a forked child, or it had opened libcuda before us. A program that
   uses CUDA sets CUDA_VISIBLE_DEVICES before its first use, so a start at its first call of BLAS would come
   too early; and beside a context of its own a start is cheap. */
void gpb_history_keep_nothing(void);

#endif
