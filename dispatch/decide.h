/* SPDX-License-Identifier: MIT */
/* gpb_decide makes a plan from a call, the facts and the user's policy. It is pure: no CUDA, no I/O, no
   environment, no clock. */
#ifndef GPB_DECIDE_H
#define GPB_DECIDE_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"

extern const char gpb_decide_too_small[];

/* Why the GPU must not compute the call in any case, or NULL. c_on_host: C is in host memory. gpu: there is
   or may be a GPU. */
const char *gpb_decide_forbids(const gpb_call *call, enum gpb_offload_when when, bool c_on_host, bool gpu);
/* The number of multiplications (m n k batch) below which no call from host memory is worth the GPU: the host
   needs a quarter of the GPU's fixed cost for them. Such calls are rejected before anything else is asked. */
double gpb_decide_too_few(const gpb_facts *facts);
gpb_plan gpb_decide(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy);

#endif
