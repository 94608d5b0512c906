/* SPDX-License-Identifier: MIT */
/* The door of isamax_. It computes nothing. Hosts are probed by their isamax_ (host/probe.c), and if a probe
   arrives here, the probed library forwards its calls to us. */
#include <stdint.h>

#include "src/host/next.h"
#include "src/host/probe.h"

/* Returns the host's result unchanged, whatever the width of its integers. */
int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx);
int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx)
{
    int64_t (*next)(const void *, const float *, const void *);
    if (gpb_probe_came_back()) return true;
    *(void **)&next = gpb_next(GPB_SYMBOL_isamax_);
    return next(n, x, incx);
}
