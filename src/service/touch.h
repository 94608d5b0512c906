/* SPDX-License-Identifier: MIT */
/* Makes the calling thread fault first if the caller passed a bad pointer. */
#ifndef GPB_TOUCH_H
#define GPB_TOUCH_H

#include "dispatch/call.h"
#include "dispatch/facts.h"

/* Touches both ends of each operand in ordinary host memory in the way the call will: A and B are read, C is
   written without a change. */
void gpb_touch(const gpb_call *call, const gpb_facts *facts);

#endif
