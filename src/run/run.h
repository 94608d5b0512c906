/* SPDX-License-Identifier: MIT */
/* Carrying out a plan: panels up, kernels, tiles of C home. */
#ifndef GPB_RUN_H
#define GPB_RUN_H

#include "dispatch/policy.h"
#include "src/gpu/lanes.h"
#include "src/run/job.h"

/* Device memory that the plan needs in a lane's arena. */
int64_t gpb_run_bytes(const gpb_call *call, const gpb_plan *plan);
/* Computes the job's C on the lane. After a failure the job's progress says what is home already; the rest of
   a C in ordinary host memory is untouched (copies to a pinned one may be under way where beta is 0). */
CUresult gpb_run_job(gpb_lane *lane, gpb_job *job);
/* Queues a product of which all operands are on the device, with the beginning of the lane's arena as its
   workspace (facts->gpu.bytes of it), and does not wait. *why: if not NULL, it is no plan for the GPU, and
   why. */
CUresult gpb_run_queue(gpb_lane *lane, const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                       const char **why);

/* Makes that stream, and the one of the lane's copies up, wait for what the program has queued on the legacy
   stream of that context, which may be another GPU's; of none if it is NULL. */
CUresult gpb_run_follow(const gpb_lane *lane, CUstream stream, CUcontext context);

#endif
