/* SPDX-License-Identifier: MIT */
/* How many other threads of the process run beside the crew: PyTorch's, OpenMP's or TBB's, which look for
   work on a core each as the host BLAS's do, but never tell us. While a call copies, the process's CPU time
   less the crew's and the caller's is what the others get. The verdict goes to contention.h. */
#ifndef GPB_CROWD_H
#define GPB_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/* A call begins or ends, and no other is copying. */
void gpb_crowd_call_begins(void);
void gpb_crowd_call_ends(void);
/* Another call has come, so the present one is not measured. */
void gpb_crowd_disturb(void);

/* What a worker knows of itself; all zero at first. */
typedef struct gpb_crowd_worker {
    bool counts;                 /* the next two are known */
    int64_t cpu_ns, beside_ns;   /* its CPU time, and the time of all measured calls, when it last reported */
} gpb_crowd_worker;
/* A worker has no job at the time `now`. It begins to be awake, or was awake since it was here last. */
void gpb_crowd_worker_looks(gpb_crowd_worker *worker, int64_t now);
/* It goes to sleep. */
void gpb_crowd_worker_sleeps(gpb_crowd_worker *worker);

/* The calls measured since the last verdict look crowded, and no crowd is known yet. Their time tells nothing
   of calls without a crowd. */
bool gpb_crowd_is_suspected(void);
/* For a forked child: nothing is being measured. */
void gpb_crowd_in_child(void);

#endif
