/* SPDX-License-Identifier: MIT */
/* What a plan costs before it is carried out: bytes over the link, and seconds of the whole run. */
#ifndef GPB_PREDICT_H
#define GPB_PREDICT_H

#include "dispatch/call.h"
#include "dispatch/cost.h"
#include "dispatch/facts.h"
#include "dispatch/plan.h"

/* Bytes over the link for a plan with these panels (from the extents to `group`). */
typedef struct gpb_traffic {
    double up[GPB_OPERANDS], down;
} gpb_traffic;
gpb_traffic gpb_predict_traffic(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);
/* Seconds of the link for them, up and down. */
double gpb_predict_up(const gpb_traffic *traffic, const gpb_facts *facts);
double gpb_predict_down(const gpb_traffic *traffic, const gpb_facts *facts);
/* The least seconds that the call takes with any kernel: its fixed cost and the busier direction of the
   link. */
double gpb_predict_link(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);
/* What a kernel takes of all of the call, for the predictions of all plans with it. */
typedef struct gpb_predict_kernels {
    double seconds;                      /* of the products apart, too */
    gpb_kernel_cost cost;                /* of a MAPPED kernel: its model, of which launches are parts */
} gpb_predict_kernels;
gpb_predict_kernels gpb_predict_kernels_of(const gpb_kernel *kernel, double seconds, const gpb_call *call,
                                           const gpb_facts *facts);
/* Predicted seconds of the whole run; or any that are not less than `limit_s`, if that is what they are. */
double gpb_predict_run(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                       const gpb_predict_kernels *kernels, double limit_s);

#endif
