/* SPDX-License-Identifier: MIT */
/* What this machine does, as far as it was measured: the link, the fixed cost of a call, and what calls really took, on the host by its
   number of threads and on the GPU. */
#ifndef GPB_MACHINE_H
#define GPB_MACHINE_H

#include "dispatch/facts.h"
#include "dispatch/learn.h"
#include "dispatch/policy.h"

/* Classes of the host's threads: 1, 2, 3 and 4, 5 to 8, 9 to 16, more; tables of the GPU. */
enum { GPB_MACHINE_THREADS = 6, GPB_MACHINE_GPU = 3 };

typedef struct gpb_machine {
    /* as calibrated; 0: unknown */
    _Atomic int64_t dma_mbs;             /* pinned memory, each way while both run, MB/s */
    _Atomic int64_t core_mbs;            /* one core copying into pinned memory, MB/s */
    _Atomic int64_t launch_ns;           /* a call's fixed cost on the GPU */
    gpb_learn host[GPB_MACHINE_THREADS];
    gpb_learn gpu[GPB_MACHINE_GPU];      /* operands in host memory; on the GPU; in host memory of a crowded process (contention.h) */
} gpb_machine;
extern gpb_machine gpb_machine_here;

/* The facts that are the machine's, with what was learnt of calls like this one. */
void gpb_machine_facts(const gpb_call *call, gpb_facts *facts);
/* Another number after each change of what is known that might change a decision. */
unsigned gpb_machine_age(void);
/* The single figures were measured, or read: what follows from them is worked out anew. */
void gpb_machine_measured(void);
/* gpb_decide_too_few for this machine and the host as it was last seen. */
double gpb_machine_too_few(void);
/* A call like this one goes to that side to try it. */
void gpb_machine_tried(const gpb_call *call, const gpb_facts *facts, bool gpu);
/* What a call took on the host with so many threads, and what the model says without corrections. */
void gpb_machine_host_took(const gpb_call *call, int threads, double modelled_s, double seconds);
/* The same for the GPU. True: much was learnt since this was last true, and some time has passed: it is worth saving. */
bool gpb_machine_gpu_took(const gpb_call *call, const gpb_facts *facts, double modelled_s, double seconds);

#endif
