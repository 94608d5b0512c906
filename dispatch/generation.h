/* SPDX-License-Identifier: MIT */
/* What generations of GPUs can do: the rows GPU of tuned.def. */
#ifndef GPB_GENERATION_H
#define GPB_GENERATION_H

#include "dispatch/type.h"

typedef struct gpb_generation {
    int arch;                    /* its first compute capability */
    int fma_per_sm;              /* FP32 FMA units of a multiprocessor */
    double ghz;                  /* a usual clock */
    double memory_gbs;           /* what a copy kernel reaches */
    double launch_us;            /* one more kernel in a call */
    double pass;                 /* share of memory_gbs that packing, slicing and adding up partial sums
                                    reach */
    int fp64_per_sm;             /* FP64 FMAs a clock of a multiprocessor: of its tensor cores if they are
                                    faster */
} gpb_generation;

/* The newest generation that is not newer than this GPU. */
const gpb_generation *gpb_generation_of(int arch);
/* Seconds that a multiprocessor takes for one multiply-add of that type at its peak, on the average of many.
   A complex one is four real ones. */
double gpb_generation_fma_s(const gpb_generation *gpu, enum gpb_type type);

#endif
