/* SPDX-License-Identifier: MIT */
/* Which row of the kernel table for a call, in how many parts of k, and what that row wants packed. */
#ifndef GPB_KERNEL_PICK_H
#define GPB_KERNEL_PICK_H

#include "dispatch/plan.h"

typedef struct gpb_packing { bool a, b, c; } gpb_packing;

/* A panel of a host operand comes to the GPU column-major with a leading dimension of whole 64s: for a PADDED row that will do if
   op is N and the sizes are multiples of the tile (panels are cut at multiples of 256, so the whole sizes decide). All else goes
   through gpb_spack; what a SPLIT row reads, all of it through gpb_ssplit. C needs a workspace if the row asks for it, or if only a
   triangle of it may be written in place. */
gpb_packing gpb_kernel_packing(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);

/* kernel NULL: no row runs here. stand_in: beside a SPLIT kernel, else NULL. splits >= 1. shares: k may be shared out (share.h). seconds: the
   prediction. */
typedef struct gpb_choice { const gpb_kernel *kernel, *stand_in; int splits; bool shares; double seconds; } gpb_choice;

/* The row (and the parts) the user asked for if it is there and runs on this GPU; else what is predicted to be fastest. `lean`: only what
   needs no memory beside the operands. */
gpb_choice gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool lean);
/* The same, not from memory. */
gpb_choice gpb_kernel_pick_anew(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool lean);

#endif
