/* SPDX-License-Identifier: MIT */
/* Where operands live, and what else of the GPU a decision may know. */
#ifndef GPB_PLACE_H
#define GPB_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"

/* Known without asking the driver: no operand is on a GPU. libcuda: the process has it. */
bool gpb_place_surely_host(const gpb_call *call, bool libcuda);
/* The driver says, or said a moment before `now` (the processor's cycles), that no operand is on a GPU.
   Cheaper than gpb_place_facts. False says nothing. */
bool gpb_place_probed_host(const gpb_call *call, uint64_t now);
/* What the decision may know: the GPU (an assumed one until it is started) and where the operands live. It
   calls the driver, so the thread must not be cancelled meanwhile. */
void gpb_place_facts(const gpb_call *call, bool libcuda, gpb_facts *facts);

/* One kind of warning, so it appears once a process: the routine, the reason, and what became of C. */
#define GPB_PLACE_UNREACHED "%s: an operand in GPU memory %s; C %s"
/* What became of a C that the call has not begun. */
#define GPB_PLACE_UNBEGUN "was not computed"
/* The GPUs are lost, and an operand lies where the host would crash on it. */
bool gpb_place_unreachable(const gpb_call *call);

enum gpb_place gpb_place_of(const void *pointer);

#endif
