/* SPDX-License-Identifier: MIT */
/* Predicted seconds: on the host, on the link, in a kernel. Rough: within a factor of two. Cheap: some tens of nanoseconds. */
#ifndef GPB_COST_H
#define GPB_COST_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/kernel_table.h"

/* The call by the host BLAS on all cores. */
double gpb_cost_host(const gpb_call *call, const gpb_facts *facts);
/* Bytes over the link. */
double gpb_cost_link(double bytes, const gpb_facts *facts);
/* The call by one kernel that reaches `share` of the GPU's peak on large problems, operands on the GPU, packing included. */
double gpb_cost_kernel(const gpb_kernel *kernel, double share, const gpb_call *call, const gpb_facts *facts);

#endif
