/* SPDX-License-Identifier: MIT */
/* Libraries that come and go while the program runs: libcuda, and a BLAS whose plain names take 64-bit
   integers. */
#ifndef GPB_WATCH_H
#define GPB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "src/host/symbol.h"

/* Looks for libraries that came or went since the last scan. If a BLAS whose plain names take 64-bit integers
   has come, we stand aside (symbol.h). now: the processor's cycle counter, so that it scans only if the last
   scan is some time ago; 0: it scans at once. Returns true if libcuda is in the process. */
bool gpb_watch_scan(uint64_t now);
/* Of a door with 64-bit integers whose host's routine may end with a jump to one of its own by a plain name:
   that one is then called, as it seems, by the door. */
#define GPB_WATCH_WIDE_DOOR __attribute__((section("gpb_wide_doors")))
/* The host's function with 64-bit integers, if the library with the calling code would have found one under
   this name without us; else NULL. */
void *gpb_watch_wide(enum gpb_symbol symbol, const void *caller);

#endif
