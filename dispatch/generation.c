/* SPDX-License-Identifier: MIT */
/* The generations; see generation.h. */
#include "dispatch/generation.h"

#include <stdbool.h>

static const gpb_generation generations[] = {
#define GPU(arch, fma_per_sm, ghz, memory_gbs, launch_us, pass, fp64_per_sm) \
    { arch, fma_per_sm, ghz, memory_gbs, launch_us, pass, fp64_per_sm },
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

double gpb_generation_fma_s(const gpb_generation *gpu, enum gpb_type type)
{
    const gpb_type_row *row = gpb_type_of(type);
    const bool single = gpb_type_real_bytes(type) == gpb_type_real_bytes(GPB_TYPE_s);
    const double reals = row->flops / (double)gpb_type_of(GPB_TYPE_s)->flops;
    return reals * 1e-9 / ((single ? gpu->fma_per_sm : gpu->fp64_per_sm) * gpu->ghz);
}
