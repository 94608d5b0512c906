/* SPDX-License-Identifier: MIT */
/* Cutting a call into panels that fit the device memory it may use. */
#ifndef GPB_PANELS_H
#define GPB_PANELS_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/predict.h"

/* Given plan->kernel, fallback, splits, streamk and what the kernel takes, sets the panels, kc, group, wide
   and the bytes, and more splits where strips want them and streamk allows it. False: not even the smallest
   panels fit. */
bool gpb_panels_choose(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                       const gpb_predict_kernels *kernels);

/* Seconds of the run with the link of an H200: what choices are made by that decide the order of sums. */
double gpb_panels_usual_s(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                          const gpb_predict_kernels *kernels);

/* True if B's strips are A's, so that one matrix, or each of the two of SYR2K, comes once: both operands are
   the whole of it, cut alike. */
bool gpb_panels_one_matrix(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);

/* True if the triangle of a symmetric operand comes alone: from the host's memory to one panel of all of it,
   on a GPU that has the kernel which mirrors it, if what does not come would take longer than that. */
bool gpb_panels_mirror(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);

#endif
