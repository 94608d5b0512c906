/* SPDX-License-Identifier: MIT */
/* Carries out a factorisation or a solve on the GPU from beginning to end (dispatch/resident.h): its matrices
   up, LAPACK's recursion by launches, the results home. No CUDA types appear here, as in gpu.h. */
#ifndef GPB_RUN_RESIDENT_H
#define GPB_RUN_RESIDENT_H

#include "dispatch/facts.h"
#include "dispatch/policy.h"
#include "dispatch/resident.h"

typedef struct gpb_resident_outcome {
    bool done;                   /* *info is LAPACK's; false: nothing of the caller's is changed but ipiv,
                                    unless it is overwritten */
    const char *failure;         /* NULL, or what stopped the GPU; the host then finished the rest, if done */
    bool warn;                   /* it was an error of the driver's */
    bool kept;                   /* the factors were on the GPU still, and were not sent */
    bool overwritten;            /* not done, and what was to be written, to device memory or beside it, is
                                    neither the result nor what it was */
    int64_t info;
    int64_t bytes_up, bytes_down;
} gpb_resident_outcome;

/* facts: of the equivalent product: where its A and B live is where those of the system do. If a matrix is
   not positive definite, the host goes on behind the last minor that was right, and leaves A as its own
   LAPACK does. */
gpb_resident_outcome gpb_resident_run(const gpb_resident *work, const gpb_facts *facts,
                                      const gpb_policy *policy);

#endif
