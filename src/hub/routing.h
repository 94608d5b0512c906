/* SPDX-License-Identifier: MIT */
/* Which side a call goes to: the facts gathered, the plan asked for, and what of earlier calls bears on that. */
#ifndef GPB_ROUTING_H
#define GPB_ROUTING_H

#include <stdbool.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"

/* What the user wants, by the options. */
gpb_policy gpb_routing_policy(void);
/* Why the call goes to the host without facts, or NULL. Most calls are small and take the host less than a microsecond; facts and plan cost
   half of one. *libcuda: this process has it, and the call may go to a GPU. */
const char *gpb_routing_reject_fast(const gpb_call *call, bool *libcuda);
/* The facts and the plan; the GPU started if the plan asks for it, behind this call or, if that is worth waiting for, before it. */
gpb_plan gpb_routing_decide(const gpb_call *call, bool libcuda, const gpb_policy *user, gpb_facts *facts);
/* A size that the plan sends to the host for good is rejected fast from now on. */
void gpb_routing_remember(const gpb_call *call, const gpb_plan *plan);

/* Around a call that goes to the GPU: other calls' plans know of it. enter: true if no other call is there. */
bool gpb_routing_enter_gpu(bool large);
void gpb_routing_leave_gpu(bool large);
/* Around a call that goes to the host. leave is harmless where nothing was entered. */
void gpb_routing_enter_host(const gpb_call *call);
void gpb_routing_leave_host(void);

#endif
