/* SPDX-License-Identifier: MIT */
/* Which row of the kernel table computes a call, and into how many parts it cuts k. */
#ifndef GPB_KERNEL_PICK_H
#define GPB_KERNEL_PICK_H

#include "dispatch/call.h"
#include "dispatch/cost.h"
#include "dispatch/facts.h"
#include "dispatch/kernel_table.h"
#include "dispatch/policy.h"

/* kernel NULL: no row runs here. fallback: set beside a SLICED kernel, else NULL. splits >= 1. streamk:
   Stream-K is allowed (streamk.h). seconds: the prediction. */
typedef struct gpb_choice { const gpb_kernel *kernel,
                            *fallback; int splits; bool streamk; double seconds; } gpb_choice;

/* The row (and the parts) that the user asked for, if it exists and runs on this GPU; else the row that is
   predicted to be fastest. no_workspace: only kernels that need no memory beside the operands. */
gpb_choice gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                           bool no_workspace);
/* The same without the memo. */
gpb_choice gpb_kernel_pick_anew(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                                bool no_workspace);
/* The call's cost by that kernel, without Stream-K. */
gpb_kernel_cost gpb_kernel_pick_cost(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);

#endif
