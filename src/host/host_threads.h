/* SPDX-License-Identifier: MIT */
/* The threads of the host BLAS. */
#ifndef GPB_HOST_THREADS_H
#define GPB_HOST_THREADS_H

#include <stdbool.h>

/* Finds the functions of a host that say and set how many threads it computes with. routine: any of its own;
   NULL: an embedded one, which has one thread, unless a host that says more is known. Enters the dynamic
   linker: call it between gpb_linker_enter and gpb_linker_leave. */
void gpb_host_threads_find(const void *routine);
/* Threads that the host BLAS computes with now, as it says itself; 0: it does not say, or no call has gone to
   it yet. */
int gpb_host_threads(void);
/* The host can be told how many. */
bool gpb_host_threads_settable(void);
/* All hosts that would use more than `most` threads (at least 1) and can be told so compute with that many
   until gpb_host_threads_restore. Returns how many the largest would use; 0: nothing was done. If not 0, the
   same thread must call gpb_host_threads_restore. */
int gpb_host_threads_lower(int most);
void gpb_host_threads_restore(void);
/* For a forked child, in which the thread that has lowered the number does not exist. The number is what it
   was again from the next call of `recover` on, which may start the host's threads. */
void gpb_host_threads_in_child(void);
void gpb_host_threads_recover(void);

#endif
