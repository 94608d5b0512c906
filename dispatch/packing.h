/* SPDX-License-Identifier: MIT */
/* Which operands must be packed before a kernel can use them. */
#ifndef GPB_PACKING_H
#define GPB_PACKING_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/kernel_table.h"

/* True if the operand must be packed. A panel of a host operand arrives on the GPU column-major, with a
   leading dimension in multiples of 64. For a PADDED row that is enough if op is N and the sizes are
   multiples of the tile (panels are cut at multiples of 256, so the whole sizes decide). All other operands
   go through gpb_spack, and those of a guarded row through its slicer. A MAPPED row packs what tensor copies
   cannot read. Of SYR2K either matrix must be fit to be read on either side. C needs a workspace if the row
   asks for it, if the kernel would write beside a triangle on the device, or if its diagonal is to become
   real and nobody but the driver copies it home. */
bool gpb_packing_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                    enum gpb_operand x);
/* True if C is on the device and has a triangle that one product is written to. The sum of SYR2K goes through
   a workspace: a block that one of its products flagged is computed again from both (src/run/launch.c). */
bool gpb_packing_into_triangle(const gpb_call *call, const gpb_facts *facts);
/* C's triangle, 'U' or 'L', if that is so and the kernel computes that alone and in place where C is
   one block (panels.c). 0: any other C. */
int gpb_packing_triangle(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);
/* True if what the kernel's slicer makes of A and of B, both on the device, is the same: they are one matrix,
   real, and padded to as many rows. Then it is made once. */
bool gpb_packing_one(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);
/* True if PADDED kernels can read the operand where it lies on the device: stored as op(X), and aligned to
   256 bytes at every panel and member. */
bool gpb_packing_aligned(const gpb_call *call, enum gpb_operand x);
/* True if tensor copies can read the operand as it is or comes: aligned to 16 bytes at every place and
   member. */
bool gpb_packing_mapped(const gpb_call *call, const gpb_facts *facts, enum gpb_operand x);
/* False if a MAPPED, RESIDUES or PADDED_C kernel cannot compute the call at all. True for every other
   kernel; but if the call is joined, only of MAPPED ones, where nothing has to be packed. */
bool gpb_packing_can(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);
/* True if an operand is packed for a kernel that takes others in strips (panels.h). Then none of this call
   comes in strips. */
bool gpb_packing_hinders(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts);

#endif
