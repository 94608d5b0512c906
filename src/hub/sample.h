/* SPDX-License-Identifier: MIT */
/* What a few rows of the operands say of all of them. */
#ifndef GPB_SAMPLE_H
#define GPB_SAMPLE_H

#include "dispatch/call.h"
#include "dispatch/facts.h"

/* False if many rows of op(A) or columns of op(B) in the host's memory would be marked by RESIDUES kernels
   (kernels/residues/README.md), such as those of a matrix with a dominant diagonal: FP64 kernels would then
   compute most of C, a small rectangle after the other. The same operands get the same answer. Of a triangle
   only what is stored is read. */
bool gpb_sample_suits_residues(const gpb_call *call, const gpb_facts *facts);

#endif
