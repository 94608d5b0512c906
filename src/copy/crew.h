/* SPDX-License-Identifier: MIT */
/* The crew: threads that copy rectangles between the program's matrices and pinned memory, for all calls of the process. They never see
   the CUDA driver, so nothing that they do can fail. A call (the conductor) posts jobs into a queue of its own and reaps them in that
   order; it helps whenever it would otherwise wait, for there may be no workers at all (one core, no threads to be had, a forked child). */
#ifndef GPB_CREW_H
#define GPB_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/copy/copy2d.h"

/* Fewer workers than GPB_CREW_FEW do not fill the link (six fill one direction of PCIe gen5). */
enum { GPB_CREW_JOBS = 512, GPB_CREW_FEW = 8 };

typedef struct gpb_crew_job {
    gpb_copy2d_job rectangle;
    atomic_bool done;
} gpb_crew_job;

/* One producer, the call that began it; any worker takes from it. All zero is valid. Void in a child forked meanwhile: begin it again. */
typedef struct gpb_crew_queue {
    struct gpb_crew_seat *seat;              /* where workers look for it; NULL: nowhere left, then a post does its job itself */
    uint64_t first, posted, reaped;          /* first: the seat's number of job 0; the others count since gpb_crew_begin */
    gpb_crew_job jobs[GPB_CREW_JOBS];
} gpb_crew_queue;

/* Cores that this process may use: by affinity (of its main thread, if this one is bound more narrowly) and by cgroup quota. At least 1. */
int gpb_crew_cores(void);
/* Workers that this process has, or would have; 0: callers copy by themselves. GPUBLAS_THREADS counts until the workers have started. */
int gpb_crew_size(void);
/* From here on workers look at the queue. Starts them at first use, wakes none. */
void gpb_crew_begin(gpb_crew_queue *queue);
/* False: GPB_CREW_JOBS are posted and not reaped. */
bool gpb_crew_post(gpb_crew_queue *queue, const gpb_copy2d_job *job);
/* True: the oldest job not yet reaped is done, its effects are visible, and it is forgotten. */
bool gpb_crew_reap(gpb_crew_queue *queue);
/* The caller does the next job that nobody has taken; false: there is none. */
bool gpb_crew_help(gpb_crew_queue *queue);
/* Does or waits for what is posted and not reaped. No worker touches the queue after this returns. */
void gpb_crew_end(gpb_crew_queue *queue);
/* In a forked child: there are no workers. */
void gpb_crew_in_child(void);

#endif
