/* SPDX-License-Identifier: MIT */
/* This machine as far as it was measured: the link, the fixed cost of a call, and the time that calls really
   took, on the host by its number of threads, and on the GPU. */
#ifndef GPB_MACHINE_H
#define GPB_MACHINE_H

#include "dispatch/facts.h"
#include "dispatch/learn.h"
#include "dispatch/policy.h"

/* Tables of the host, by its threads: 1, 2, 3 and 4, 5 to 8, 9 to 16, more. Tables of the GPU. */
enum { GPB_MACHINE_THREADS = 6, GPB_MACHINE_GPU = 3 };

typedef struct gpb_machine {
    /* as calibrated; 0: unknown */
    _Atomic int64_t dma_mbs;             /* pinned memory, each way while both run, MB/s */
    _Atomic int64_t core_mbs;            /* one core copying into pinned memory, MB/s */
    _Atomic int64_t launch_ns;           /* a call's fixed cost on the GPU */
    gpb_learn host[GPB_MACHINE_THREADS];
    gpb_learn gpu[GPB_MACHINE_GPU];      /* operands in host memory; in GPU memory; in host memory under
                                            contention */
} gpb_machine;
extern gpb_machine gpb_machine_here;

/* Threads that the host's next call should compute with: fewer than it would if the crew needs their
   cores. */
int gpb_machine_host_threads(void);
/* Fills in the machine's facts, with what was learnt from calls like this one. */
void gpb_machine_facts(const gpb_call *call, gpb_facts *facts);
/* A number that changes whenever something is learnt that might change a decision. */
unsigned gpb_machine_age(void);
/* The link and the fixed cost were measured or read: update what is derived from them. */
void gpb_machine_measured(void);
/* gpb_decide_too_few for this machine, with the host's threads as last seen. */
double gpb_machine_too_few(void);
/* A call like this one is sent to that side in order to try it. */
void gpb_machine_tried(const gpb_call *call, const gpb_facts *facts, bool gpu);
/* Learns from a call on the host. threads: the host's; modelled_s: the model's prediction without
   corrections; seconds: the time that the call took. */
void gpb_machine_host_took(const gpb_call *call, int threads, double modelled_s, double seconds);
/* The same for a call on the GPU. True: enough was learnt since the last time, and enough time has passed,
   that it is worth saving. */
bool gpb_machine_gpu_took(const gpb_call *call, const gpb_facts *facts, double modelled_s, double seconds);

#endif
