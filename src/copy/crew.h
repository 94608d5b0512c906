/* SPDX-License-Identifier: MIT */
/* The crew: threads that copy rectangles between the program's matrices and pinned memory, take digests and
   move columns, for all calls of the process. They never enter the CUDA driver, so nothing that they do can
   fail. A call's own thread posts jobs into a queue of its own and reaps them in the same order. It does jobs
   itself when it would otherwise wait, because there may be no workers at all (one core, no threads allowed,
   a forked child). */
#ifndef GPB_CREW_H
#define GPB_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/copy/columns.h"
#include "src/copy/copy2d.h"
#include "src/copy/digest.h"

/* Fewer workers than GPB_CREW_FEW do not fill the link (six fill one direction of PCIe gen5). */
enum { GPB_CREW_JOBS = 512, GPB_CREW_FEW = 8 };

enum gpb_crew_kind { GPB_CREW_COPY, GPB_CREW_DIGEST, GPB_CREW_COLUMNS };

typedef struct gpb_crew_job {
    enum gpb_crew_kind kind;
    union {
        gpb_copy2d_job rectangle;
        gpb_digest_job digest;
        gpb_columns_job columns;
    } of;
    atomic_bool done;
} gpb_crew_job;

/* A queue has one producer, the call that began it; any worker takes jobs from it. All zero is valid. After a
   fork it is void in the child, which must begin it again. */
typedef struct gpb_crew_queue {
    struct gpb_crew_seat *seat;              /* where workers find it; NULL: all seats are taken, so a post
                                                does its job itself */
    uint64_t first, posted, reaped;          /* first: the seat's number of job 0; the others count from
                                                gpb_crew_begin on */
    gpb_crew_job jobs[GPB_CREW_JOBS];
} gpb_crew_queue;

/* Workers that this process has or would start; 0: calls copy by themselves. GPUBLAS_THREADS counts until the
   workers have started. */
int gpb_crew_size(void);
/* Shows the queue to the workers. The first call of all starts them. No worker is woken. */
void gpb_crew_begin(gpb_crew_queue *queue);
/* Posts a copy of the job. False: GPB_CREW_JOBS jobs are posted and not yet reaped. */
bool gpb_crew_post(gpb_crew_queue *queue, const gpb_copy2d_job *job);
/* The same of columns whose digest is added up. */
bool gpb_crew_post_digest(gpb_crew_queue *queue, const gpb_digest_job *job);
/* The same of rows whose columns are moved. */
bool gpb_crew_post_columns(gpb_crew_queue *queue, const gpb_columns_job *job);
/* True: the oldest job that was not reaped is done, its effects are visible, and it is now reaped. */
bool gpb_crew_reap(gpb_crew_queue *queue);
/* Does the next job that nobody has taken. False: there is none. */
bool gpb_crew_help(gpb_crew_queue *queue);
/* Does or waits for all jobs that are not reaped. After it returns no worker touches the queue. */
void gpb_crew_end(gpb_crew_queue *queue);
/* For a forked child: it has no workers. */
void gpb_crew_in_child(void);

#endif
