/* SPDX-License-Identifier: MIT */
/* Whether other threads compete with ours for cores: the host BLAS's, or a crowd of others. After a call the
   host's threads look for more work for a while, each on a core of its own, and our copying threads share
   these cores with them. That is high contention. If the others leave enough cores free, contention is not
   high, but fewer of our threads copy. */
#ifndef GPB_CONTENTION_H
#define GPB_CONTENTION_H

#include <stdbool.h>

/* The host BLAS has computed with that many threads, its callers among them, in a process of that many cores.
   threads < 1: unknown, taken as all cores. */
void gpb_contention_begin(int threads, int cores);
/* That many other threads of the process were found to run while calls copied (crowd.h); 0: none. */
void gpb_contention_crowd(int threads, int cores);
bool gpb_contention_is_crowd(void);
/* The host's threads may hold cores, or did until now. A crowd could not be told from them. */
bool gpb_contention_is_hosts(void);
bool gpb_contention_is_high(void);
/* The number of the crew's workers that may be awake, so that none shares a core with those threads. At
   least 1. GPB_CONTENTION_ALL_WORKERS if those threads are idle, and also if they leave too few cores for
   that (gpb_contention_is_high). */
enum { GPB_CONTENTION_ALL_WORKERS = 1 << 16 };
int gpb_contention_workers(void);

/* A call went to the host only because contention is high. Without contention the GPU would have been faster
   by `saved_s` seconds; as things are, it would have been slower by `lost` of each second. Once the time lost
   in this way exceeds the cost of letting the host's threads go idle, offloading is forced for a while.
   Returns true for the call that starts it. */
bool gpb_contention_missed(double saved_s, double lost);
/* Offloading is forced now: plan as if there were no contention. */
bool gpb_contention_is_draining(void);

/* Calls on the host that leave the crew its cores keep contention from beginning, but take longer
   themselves.
   few: the most threads that they may use for that. spares: they shall, because GPU calls gain more by it
   than they lose, and one thread alone has called for a second. called_by: a call comes from the thread that
   has this at an address of its own. */
int gpb_contention_few(int cores);
void gpb_contention_called_by(const void *thread);
bool gpb_contention_spares(void);
/* What that is learnt from. gains: a call has lost so many seconds to contention. copied: a call's bytes have
   gone through the rings, which takes so long without contention. host_took: a call that is the host's has
   taken so long with `threads` of `all` its threads. */
void gpb_contention_gains(double seconds);
void gpb_contention_copied(double seconds);
void gpb_contention_host_took(double seconds, int threads, int all, int cores);

#endif
