/* SPDX-License-Identifier: MIT */
/* The generations; see generation.h. */
#include "dispatch/generation.h"

static const gpb_generation generations[] = {
#define GPU(arch, fma_per_sm, ghz, memory_gbs, launch_us, pass) \
    { arch, fma_per_sm, ghz, memory_gbs, launch_us, pass },
#define TUNED(...)
#define FALLBACK(...)
#include "dispatch/tuned.def"
#undef GPU
#undef TUNED
#undef FALLBACK
};

const gpb_generation *gpb_generation_of(int arch)
{
    int i = sizeof generations / sizeof *generations - 1;
    while (i > 0 && generations[i].arch > arch) i--;
    return &generations[i];
}
