/* SPDX-License-Identifier: MIT */
/* What of a call has to be packed before a kernel can read or write it. */
#ifndef GPB_PACKING_H
#define GPB_PACKING_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/kernel_table.h"

/* A panel of a host operand comes to the GPU column-major with a leading dimension of whole 64s: for a PADDED
   row that will do if op is N and the sizes are multiples of the tile (panels are cut at multiples of 256, so
   the whole sizes decide). All else goes through gpb_spack; what a SPLIT row reads, all of it through
   gpb_ssplit. C needs a workspace if the row asks for it, or if only a triangle of it may be written in
   place. */
bool gpb_packing_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                    enum gpb_operand x);
/* An operand that PADDED kernels can read where it lies on the device: stored as op(X), aligned to 256 bytes
   at every panel and member. */
bool gpb_packing_aligned(const gpb_call *call, enum gpb_operand x);

#endif
