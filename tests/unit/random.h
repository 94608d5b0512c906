/* SPDX-License-Identifier: MIT */
/* The same random numbers every time. */
#ifndef GPB_RANDOM_H
#define GPB_RANDOM_H

#include <stdint.h>

static uint64_t seed = 88172645463325252u;

static inline int64_t below(int64_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)limit);
}

/* Log-uniform, often a round number. */
static inline int64_t size(int bits)
{
    int64_t base = INT64_C(1) << below(bits + 1);
    return below(3) == 0 ? base : base + below(base);
}

#endif
