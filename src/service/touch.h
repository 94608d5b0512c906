/* SPDX-License-Identifier: MIT */
/* A bad pointer is met by the thread that brought it. */
#ifndef GPB_TOUCH_H
#define GPB_TOUCH_H

#include "dispatch/call.h"
#include "dispatch/facts.h"

/* Touches both ends of each operand in ordinary host memory, as the call will: A and B are read, C is written with what it holds. */
void gpb_touch(const gpb_call *call, const gpb_facts *facts);

#endif
