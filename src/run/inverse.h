/* SPDX-License-Identifier: MIT */
/* getri on the device (dispatch/inverse.h): U^-1 in B's place of the arena, then X in A's. To the host U^-1
   goes home first, over U, then X over both from its last column on, and at the end the crew moves the
   columns. So after a failure the host has what the rest is computed from, without a copy of the factors.
   (With such a copy, in memory that the kernel had to clear, an H200 took 65 ms for getri of 8192, of which
   the GPU worked 30: tests/bench/results/nvidia-h200/evidence/choice.md.) */
#ifndef GPB_RUN_INVERSE_H
#define GPB_RUN_INVERSE_H

#include "src/run/residence.h"

/* NULL, or why not: no memory, or pivots of no factorisation. */
const char *gpb_inverse_begin(gpb_residence *r);
/* What goes home of the inverse's matrix on the host, in the order in which it does. Returns how many. */
int gpb_inverse_home(const gpb_residence *r, const gpb_carry_matrix *x, gpb_carry_matrix to[GPB_CARRY_MOST]);
/* Queues the computation, and releases columns to the host. To a device nothing is released: the inverse is
   in B's place. */
void gpb_inverse_compute(gpb_residence *r);
/* Once X is home: its columns become those of the inverse. */
void gpb_inverse_finish(const gpb_residence *r);
/* After a failure with `done` columns of all that home: the host computes the rest. */
void gpb_inverse_go_on(const gpb_residence *r, int64_t done);
void gpb_inverse_end(gpb_residence *r);

#endif
