/* SPDX-License-Identifier: MIT */
/* The GPU as the hub sees it: started lazily, off for good after a fork or a sticky error. Free of CUDA's types: a build without CUDA has
   gpu_none.c behind this face. */
#ifndef GPB_GPU_H
#define GPB_GPU_H

#include <stdbool.h>

#include "dispatch/plan.h"

/* Starts the GPUs if that has not been tried yet. False: there is none to be had, gpb_gpu_why() says why. */
bool gpb_gpu_start(void);
bool gpb_gpu_started(void);
/* False once it is certain that no call will run on a GPU in this process. */
bool gpb_gpu_possible(void);
const char *gpb_gpu_why(void);

/* What the decision may know: of the GPU (as presumed until it is started), and where the operands live. `libcuda`: the process has it. */
void gpb_gpu_facts(const gpb_call *call, bool libcuda, gpb_facts *facts);

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

/* The started GPUs and their kernels as text, for the doctor. */
void gpb_gpu_report(int fd);

#endif
