/* SPDX-License-Identifier: MIT */
/* The door of isamax_. It computes nothing: hosts are probed by isamax_ (host/probe.c), and a probe that
   arrives here shows that the library probed forwards its calls to us. */
#include <stdint.h>

#include "src/host/next.h"
#include "src/host/probe.h"

/* Returned as the host returned it, whatever the width of its integers. */
int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx);
int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx)
{
    int64_t (*next)(const void *, const float *, const void *);
    if (gpb_probe_came_back()) return true;
    *(void **)&next = gpb_next(GPB_SYMBOL_isamax_);
    return next(n, x, incx);
}
