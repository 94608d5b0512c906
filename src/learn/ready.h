/* SPDX-License-Identifier: MIT */
/* Getting the GPUs ready while the host computes the calls: starting them, and measuring the machine. */
#ifndef GPB_READY_H
#define GPB_READY_H

#include <stdbool.h>

/* Starts the GPUs, loads the kernels that calls need most, measures the machine, and saves the result if it
   is new. All this is done in a thread of its own, once per process. */
void gpb_ready_begin(void);
/* measured: as gpb_ready_begin, and waits for its end; else starts the GPUs alone, in a thread of its own,
   and waits for that. Waits at most `most_s` seconds, and not if this thread may be the one that blocks the
   start. True: the GPUs are started. */
bool gpb_ready_await(bool measured, double most_s);
/* That thread is at work. */
bool gpb_ready_is_near(void);
/* Seconds that getting ready takes, as measured in earlier processes or else as expected; and what it costs
   the program: work of the host that is lost meanwhile, and time at the program's end. active: the program
   has a context already. */
double gpb_ready_start_s(bool active);
double gpb_ready_cost_s(bool active);
/* Seconds until the GPU is ready; 0 if there is nothing to wait for. */
double gpb_ready_left_s(bool active);
/* Saves what was learnt, before it returns. False: there is nothing to save, or no file for it. */
bool gpb_ready_save_now(void);
/* Saves what was learnt, in a thread of its own. */
void gpb_ready_save(void);

#endif
