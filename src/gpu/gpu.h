/* SPDX-License-Identifier: MIT */
/* The GPU as the hub sees it: started lazily, off for good after a fork or a sticky error. Free of CUDA's types: a build without CUDA has
   hub/no_gpu.c behind this face. */
#ifndef GPB_GPU_H
#define GPB_GPU_H

#include <stdbool.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"

/* Starts the GPUs if that has not been tried yet, or waits for who is at it. False: there is none to be had, gpb_gpu_why() says why. */
bool gpb_gpu_start(void);
/* In a thread of its own: starts the GPUs, loads what calls need most, measures the machine (and then saves what it found). Once a process. */
void gpb_gpu_start_behind(void);
/* The same, and waits for it, or (not `measured`) for the GPUs' start alone, in a thread of its own as well; but no longer than so many seconds,
   and not where this thread may be what holds it up. True: they are started. */
bool gpb_gpu_await(bool measured, double most_s);
/* That thread is at it. */
bool gpb_gpu_starting(void);
bool gpb_gpu_started(void);
/* Saves what was learnt, in a thread of its own. */
void gpb_gpu_save(void);
/* False once it is certain that no call will run on a GPU in this process. */
bool gpb_gpu_possible(void);
const char *gpb_gpu_why(void);
/* There are GPUs that could not be started, or are given up, or this is a forked child: what is in their memory is out of reach. */
bool gpb_gpu_lost(void);

/* Certain, without asking the driver, that no operand is on a GPU. `libcuda`: the process has it. */
bool gpb_gpu_unseen(const gpb_call *call, bool libcuda);
/* The driver says so, or has said so a moment before `now` (the processor's cycles); cheaper than gpb_gpu_facts. False says nothing. */
bool gpb_gpu_none_there(const gpb_call *call, uint64_t now);
/* What the decision may know: of the GPU (as presumed until it is started), and where the operands live. */
void gpb_gpu_facts(const gpb_call *call, bool libcuda, gpb_facts *facts);

/* One kind of warning, and so one a process: of which routine, why, and what became of C. */
#define GPB_GPU_UNREACHED "%s: an operand in GPU memory %s, C is %s"
/* The GPUs are lost and an operand is where the host would crash on it. */
bool gpb_gpu_unreachable(const gpb_call *call);

/* What became of a call that was to run on the GPU. */
typedef struct gpb_outcome {
    bool done;                   /* C is computed; false: nothing of C was touched, the host must compute it */
    const char *failure;         /* NULL, or what stopped the GPU: then the host finished what was left (if done) */
    const gpb_kernel *kernel;
    const gpb_kernel *wide, *stand_in;     /* NULL, or the kernels that were there for blocks that its slices do not do justice to */
    int splits;                  /* parts that k was cut into; 0, 1: none */
    int64_t bytes_up, bytes_down;
} gpb_outcome;

/* Computes the call by the plan, or by a smaller one if memory is short. A plan for the host: fetches operands from the GPU for it. */
gpb_outcome gpb_gpu_call(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan);

/* For the doctor: starts the GPUs. How many there are, the name of the first, and its architecture if no kernel of this build runs there (else 0). */
int gpb_gpu_count(const char **name, int *unserved_arch);
/* The same as text, a line each; `all`: also why each kernel that cannot run there cannot. */
void gpb_gpu_report(int fd, bool all);

#endif
