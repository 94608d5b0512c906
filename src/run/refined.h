/* SPDX-License-Identifier: MIT */
/* A solution by factors of single precision, refined by residuals of double precision until netlib's
   criterion holds (dsgesv, dsposv, zcgesv, zcposv). A and B stay on the device as they came up. */
#ifndef GPB_RUN_REFINED_H
#define GPB_RUN_REFINED_H

#include "src/run/resident_parts.h"

/* The system in single precision, on the lane of the other. Where it is, it must stay. */
typedef struct gpb_refined {
    gpb_resident work;
    gpb_residence narrow;
} gpb_refined;

/* from: A and B. Their columns are copied to single precision as they are needed. */
void gpb_refined_begin(gpb_refined *refined, gpb_residence *wide, const gpb_carry_matrix from[2]);
/* Computes, and waits for the outcome. Returns netlib's ITER: from 0 on X is on the device, and the pivots
   are where the wide residence has its own; negative: X is to be solved for in double precision. It says
   nothing after a failure, which is in `narrow`. */
int64_t gpb_refined_run(gpb_refined *refined);
/* The program's matrices are not used any more. */
void gpb_refined_end(gpb_refined *refined);

#endif
