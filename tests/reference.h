/* SPDX-License-Identifier: MIT */
/* A slow GEMM that is right, and the error bound that every kernel of ours keeps. Shared by all tests. */
#ifndef GPB_REFERENCE_H
#define GPB_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "kernels/names.h"

/* One element of the answer: its value, |alpha| |A| |B| and |beta C| at that place (both in double, over the true sums). */
typedef struct gpb_reference_element {
    double value, product, old;
} gpb_reference_element;

/* Element (i, j) of batch member l of an SGEMM call; c_before is C as it was (not read if beta == 0). */
gpb_reference_element gpb_reference_at(const gpb_call *call, const float *c_before, int64_t i, int64_t j, int64_t l);

/* How far a result may be from e.value: (k + 4) u product + 2 u old with u = 2^-24, and 2^-9 product more for TF32. */
double gpb_reference_bound(enum gpb_math math, const gpb_call *call, gpb_reference_element e);

/* Checks call->c after an SGEMM. c_before: a copy of the whole buffer of C, `bytes` long, taken before the call.
   Returns the worst error in units of the bound (<= 1 is right); INFINITY if a NaN or an infinity is lost or invented, or if
   anything outside the m x n blocks, or outside the triangle that uplo names, has changed. Pointer-array batches are checked
   member by member, with calls of their own. */
double gpb_reference_check(enum gpb_math math, const gpb_call *call, const float *c_before, size_t bytes);

/* The same for a large call with finite operands, its blocks in ascending order: outside them everything is looked at, inside all for NaN
   (which C was full of, if beta == 0) and infinities, and about `sample` results, drawn by *state, against FP64: one in each column if
   there are enough. */
double gpb_reference_sample(enum gpb_math math, const gpb_call *call, const float *c_before, size_t bytes, int64_t sample, uint64_t *state);

/* The next of *state's random numbers, < below. */
uint64_t gpb_reference_draw(uint64_t *state, uint64_t below);
/* Test data: count floats in (-1, 1), the same for the same seed. */
void gpb_reference_fill(float *x, size_t count, uint64_t seed);

#endif
