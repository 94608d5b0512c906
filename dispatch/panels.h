/* SPDX-License-Identifier: MIT */
/* Cutting a call into panels that fit the device memory it may use, and what moving them costs. */
#ifndef GPB_PANELS_H
#define GPB_PANELS_H

#include "dispatch/plan.h"

/* Given plan->kernel, stand_in and splits, fills mc, nc, kc, group, wide, the packs and the bytes. False: not even the smallest panels
   fit. */
bool gpb_panels_choose(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);
/* Bytes over the link in panels of that size: from mc to group. */
double gpb_panels_traffic(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);
/* Seconds for that traffic and for as many launches as there are panels. */
double gpb_panels_seconds(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts);

#endif
