/* SPDX-License-Identifier: MIT */
/* Computes one call on the GPU and finishes it whatever happens there. No CUDA types appear here, as in
   gpu.h. */
#ifndef GPB_COMPUTE_H
#define GPB_COMPUTE_H

#include <stdbool.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"

/* The result of a call that was to run on the GPU. */
typedef struct gpb_outcome {
    bool done;                   /* C is computed; false: C is untouched, and the host must compute it */
    const char *failure;         /* NULL, or what stopped the GPU; the host then finished the rest, if done */
    const gpb_kernel *kernel;
    const gpb_kernel *wide, *fallback;     /* NULL, or the kernels that computed the flagged blocks */
    bool lost;                   /* nobody could finish C */
    int splits;                  /* parts that k was cut into; 0, 1: not cut */
    int64_t bytes_up, bytes_down;
} gpb_outcome;

/* Computes the call by the plan, or by a smaller one if memory is short. If the plan says host, fetches
   operands from the GPU for it. */
gpb_outcome gpb_compute(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan);

#endif
