/* SPDX-License-Identifier: MIT */
/* Getting the GPUs ready behind the calls that the host computes meanwhile: starting them, and measuring the machine. */
#ifndef GPB_READY_H
#define GPB_READY_H

#include <stdbool.h>

/* In a thread of its own: starts the GPUs, loads what calls need most, measures the machine (and then saves what it found). Once a process. */
void gpb_ready_begin(void);
/* The same, and waits for it, or (not `measured`) for the GPUs' start alone, in a thread of its own as well; but no longer than so many seconds,
   and not where this thread may be what holds it up. True: they are started. */
bool gpb_ready_await(bool measured, double most_s);
/* That thread is at it. */
bool gpb_ready_is_near(void);
/* Seconds until the GPU is ready: 0 if nothing is to be waited for. */
double gpb_ready_left_s(void);
/* Saves what was learnt, in a thread of its own. */
void gpb_ready_save(void);

#endif
