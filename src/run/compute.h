/* SPDX-License-Identifier: MIT */
/* One call on the GPU, whatever happens there. Free of CUDA's types, as gpu.h is. */
#ifndef GPB_COMPUTE_H
#define GPB_COMPUTE_H

#include <stdbool.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"

/* What became of a call that was to run on the GPU. */
typedef struct gpb_outcome {
    bool done;                   /* C is computed; false: nothing of C was touched, the host must compute it */
    const char *failure;         /* NULL, or what stopped the GPU: then the host finished what was left (if done) */
    const gpb_kernel *kernel;
    const gpb_kernel *wide, *fallback;     /* NULL, or the kernels that were there for blocks that its slices do not do justice to */
    int splits;                  /* parts that k was cut into; 0, 1: none */
    int64_t bytes_up, bytes_down;
} gpb_outcome;

/* Computes the call by the plan, or by a smaller one if memory is short. A plan for the host: fetches operands from the GPU for it. */
gpb_outcome gpb_compute(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan);

#endif
