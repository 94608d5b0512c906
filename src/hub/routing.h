/* SPDX-License-Identifier: MIT */
/* Which side a call goes to: gathers the facts, asks for the plan, and keeps what earlier calls say about
   it. */
#ifndef GPB_ROUTING_H
#define GPB_ROUTING_H

#include <stdbool.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/policy.h"
#include "src/hub/offload.h"

/* What the user wants, from the options. */
gpb_policy gpb_routing_policy(void);
/* Why the call goes to the host without facts, or NULL. Most calls are small and take the host less than a
   microsecond; facts and plan take half of one. mxcsr: the caller's, because to read it takes 5 ns. *libcuda:
   the process has it, and the call may go to a GPU. */
const char *gpb_routing_reject_fast(const gpb_call *call, unsigned mxcsr, bool *libcuda);
/* The facts and the plan. Starts the GPU if the plan says so: behind this call, or before it if it is worth
   the wait. */
gpb_plan gpb_routing_decide(const gpb_call *call, bool libcuda, const gpb_policy *user, gpb_facts *facts);
/* The facts and the plan as they are now. Nothing is started, noted or waited for. */
gpb_plan gpb_routing_predict(const gpb_call *call, const gpb_policy *user, gpb_facts *facts);
/* How many times as fast as the host the GPU is predicted to be, if the call would go there, or would if it
   were started, and the host can reach its operands (HUGE_VAL: every call is to go there). Else 0. Nothing is
   noted. */
double gpb_routing_gain(const gpb_call *call);
static inline bool gpb_routing_takes(const gpb_call *call) { return gpb_routing_gain(call) > 0; }
/* If the plan sends this size to the host for good, it is rejected fast from now on. */
void gpb_routing_remember(const gpb_call *call, const gpb_plan *plan);

/* Bracket a call that goes to the GPU, so that other calls' plans know of it. enter returns true if no other
   call is there. */
bool gpb_routing_enter_gpu(bool large);
void gpb_routing_leave_gpu(bool large);
/* So many bytes of a call went up and down. */
void gpb_routing_copied(const gpb_facts *facts, int64_t up, int64_t down);
/* Bracket a call that goes to the host. leave does nothing if no call was entered. */
void gpb_routing_enter_host(const gpb_call *call, const gpb_host_call *record);
void gpb_routing_leave_host(void);

#endif
