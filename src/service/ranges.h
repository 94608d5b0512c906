/* SPDX-License-Identifier: MIT */
/* Ranges that profilers show (NVTX, domain "libgpublas"). */
#ifndef GPB_RANGES_H
#define GPB_RANGES_H

#include <stdint.h>

/* Opens a range of that name, which is copied. Only if gpb_option_profiled. 0: there is none. Ranges need not
   end in the order in which they began. */
uint64_t gpb_ranges_begin(const char *name);
void gpb_ranges_end(uint64_t range);

#endif
