/* SPDX-License-Identifier: MIT */
/* The BLAS behind us: for each exported name, the function that computes what we do not. */
#ifndef GPB_NEXT_H
#define GPB_NEXT_H

#include <stdint.h>

#include "src/host/symbol.h"

/* The host's function for a name, found once and kept; never NULL (the embedded default at last), never one of ours. */
void *gpb_next(enum gpb_symbol symbol);
/* The file the function above lives in, for people; "embedded" for our own. */
const char *gpb_next_file(enum gpb_symbol symbol);
/* The host's function with 64-bit integers, if the library that calls the plain name from there would have found one such without us; else
   NULL. */
void *gpb_next_wide(enum gpb_symbol symbol, const void *caller);
/* Looks for libraries that changed since the last call: libcuda mapped by the program, a BLAS whose plain names take 64-bit integers
   (then we stand aside). `now`: the processor's cycles; it looks only if the last look is some time ago, at 0 at once. Returns true if
   libcuda is in the process. */
bool gpb_next_look(uint64_t now);
/* Threads that the host BLAS computes with now, as it says itself; 0: it does not say, or nothing has gone to it yet. */
int gpb_next_threads(void);

#endif
