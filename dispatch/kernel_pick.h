/* SPDX-License-Identifier: MIT */
/* Which row of the kernel table for a call, and what that row wants packed. */
#ifndef GPB_KERNEL_PICK_H
#define GPB_KERNEL_PICK_H

#include "dispatch/plan.h"

typedef struct gpb_packing { bool a, b, c; } gpb_packing;

/* A panel of a host operand comes to the GPU column-major with a leading dimension of whole 64s: for a PADDED row that will do if
   op is N and the sizes are multiples of the tile (panels are cut at multiples of 256, so the whole sizes decide). All else goes
   through gpb_spack. C needs a workspace if the row asks for it, or if only a triangle of it may be written in place. */
gpb_packing gpb_kernel_packing(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);

/* The row the user asked for if it is there and runs on this GPU; else the one predicted to be fastest, of `form` STRIDED only if
   `strided`. NULL: no row runs here. *seconds: the prediction. */
const gpb_kernel *gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool strided,
                                  double *seconds);

#endif
