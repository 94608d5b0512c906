/* SPDX-License-Identifier: MIT */
/* trtri, getri and potri on the device, by columns (dispatch/inverse.h): the triangle's inverse in B's place
   of the arena, then in A's place what getri and potri make of it. To the host they go home in that order,
   over A; of getri the crew moves the columns at the end. So after a failure the host has what the rest is
   computed from, without a copy of A. (With such a copy, in memory that the kernel had to clear, an H200 took
   65 ms for getri of 8192, of which the GPU worked 30:
   tests/bench/results/nvidia-h200/evidence/choice.md.) */
#ifndef GPB_RUN_INVERSE_H
#define GPB_RUN_INVERSE_H

#include "src/run/residence.h"

/* NULL, or why not: no memory, or pivots of no factorisation. */
const char *gpb_inverse_begin(gpb_residence *r);
/* What goes home of the inverse's matrix, in the order in which it does. Returns how many. */
int gpb_inverse_home(const gpb_residence *r, const gpb_carry_matrix *x, gpb_carry_matrix to[GPB_CARRY_MOST]);
/* Queues the computation, and releases columns to the host. To a device nothing is released. */
void gpb_inverse_compute(gpb_residence *r);
/* Once all is home: X's columns become those of the inverse. */
void gpb_inverse_finish(const gpb_residence *r);
/* After a failure with `done` columns of all that home: the host computes the rest. */
void gpb_inverse_go_on(const gpb_residence *r, int64_t done);
void gpb_inverse_end(gpb_residence *r);

#endif
