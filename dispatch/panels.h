/* SPDX-License-Identifier: MIT */
/* Cutting a call into panels that fit the device memory it may use, and what moving them costs. */
#ifndef GPB_PANELS_H
#define GPB_PANELS_H

#include "dispatch/plan.h"

/* Given plan->kernel, stand_in, splits and shares, and what the kernels take, fills mc to group, sm, sn, wide, the packs, buffers and bytes. False:
   not even the smallest panels fit. */
bool gpb_panels_choose(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts, double kernels_s);

/* Bytes over the link in panels of that size: from mc to group. */
typedef struct gpb_traffic {
    double a, b, c_up, c_down;
} gpb_traffic;
gpb_traffic gpb_panels_traffic(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);
/* Seconds that the call takes at least, whatever the kernels: its fixed cost, the busier direction of the link. */
double gpb_panels_seconds(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);

#endif
