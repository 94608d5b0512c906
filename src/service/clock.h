/* SPDX-License-Identifier: MIT */
/* The clock for durations. */
#ifndef GPB_CLOCK_H
#define GPB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t gpb_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline double gpb_clock_s(void) { return 1e-9 * (double)gpb_clock_ns(); }

#endif
