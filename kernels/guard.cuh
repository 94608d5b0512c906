/* SPDX-License-Identifier: MIT */
/* Writing guard words (gemm_args.h). */
#ifndef GPB_GUARD_CUH
#define GPB_GUARD_CUH

#include "kernels/gemm_args.h"

/* Sets the word to that mark unless it has a higher one, whatever was there before. */
static __device__ __forceinline__ void gpb_guard_raise(uint64_t *word, int mark, uint64_t epoch)
{
    for (uint64_t old = *word, seen; gpb_guard_mark(old, epoch) < mark; old = seen)
        seen = atomicCAS((unsigned long long *)word, old, gpb_guard_word(mark, epoch));
}

#endif
