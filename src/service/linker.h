/* SPDX-License-Identifier: MIT */
/* Threads of ours inside the dynamic linker, and forks: a child has none of the other threads, but the linker as they left it. */
#ifndef GPB_LINKER_H
#define GPB_LINKER_H

#include <stdbool.h>

/* Around what enters the dynamic linker: a fork waits for it (some milliseconds at most), and it for a fork that is under way. The thread is
   not cancelled meanwhile. What enter returns, leave wants back. */
int gpb_linker_enter(void);
/* False, and nothing is entered, if a fork is under way. */
bool gpb_linker_try(int *cancel);
void gpb_linker_leave(int cancel);
/* This thread is in a fork, between our handlers: it computes on the host, for the GPU's state may be the parent's. */
bool gpb_linker_forking(void);
/* Handlers of fork, for hub/fork.c. */
void gpb_linker_before_fork(void);
void gpb_linker_in_parent(void);
void gpb_linker_in_child(void);

#endif
