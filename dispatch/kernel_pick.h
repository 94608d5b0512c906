/* SPDX-License-Identifier: MIT */
/* Which row of the kernel table for a call, and in how many parts of k. */
#ifndef GPB_KERNEL_PICK_H
#define GPB_KERNEL_PICK_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/kernel_table.h"
#include "dispatch/policy.h"

/* kernel NULL: no row runs here. fallback: beside a SPLIT kernel, else NULL. splits >= 1. streamk: k may be
   shared out (streamk.h). seconds: the prediction. */
typedef struct gpb_choice { const gpb_kernel *kernel,
                            *fallback; int splits; bool streamk; double seconds; } gpb_choice;

/* The row (and the parts) the user asked for if it is there and runs on this GPU; else what is predicted to
   be fastest. `lean`: only what needs no memory beside the operands. */
gpb_choice gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool lean);
/* The same, not from memory. */
gpb_choice gpb_kernel_pick_anew(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                                bool lean);

#endif
