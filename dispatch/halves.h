/* SPDX-License-Identifier: MIT */
/* What all algorithms by halves share: how far a matrix is halved, and where. */
#ifndef GPB_HALVES_H
#define GPB_HALVES_H

#include "dispatch/numbers.h"
#include "dispatch/policy.h"
#include "dispatch/type.h"

/* Blocks up to this order are the host's. 256 is not measured. It leaves the host 256 / order of the work
   and gives the GPU products of k = 256 at least; the host takes three times as long for one of 8192 x 256 x
   256 in double as the link for its operands (0.5 TFLOP/s, 50 GB/s). If all products are to be on the GPU,
   even small matrices have some. */
static inline int64_t gpb_halves_leaf(int64_t order, enum gpb_offload_when when)
{
    enum { LEAF = 256, LEAST = 16 };
    return when != GPB_OFFLOAD_ALWAYS ? LEAF : min(LEAF, max(LEAST, order / 8));
}

/* LAPACK's factorisations and inverses are cut into calls from this order on, where they do not stay on the
   GPU (resident.h). The host's own routines are better than their parts, and each product brings its operands
   anew. An H200 beside 16 cores, of the speed of these alone: 0.7 to 1.6 at 2048; at 4096 0.6 to 1.6 in s,
   0.9 to 1.5 in d, 1.3 to 2.1 in c; at 8192 in d 1.4 to 2.4 (the earlier run in
   tests/bench/results/nvidia-h200/evidence/solvers.md). */
static inline int64_t gpb_halves_least(enum gpb_type type, enum gpb_offload_when when)
{
    return when == GPB_OFFLOAD_ALWAYS ? 0 : type == GPB_TYPE_s ? 8192 : 4096;
}

/* Half of the order, in whole tiles of a kernel if it is large. */
static inline int64_t gpb_halves_first(int64_t order)
{
    enum { GRAIN = 256 };
    const int64_t half = ceil_div(order, 2);
    return order > 4 * GRAIN ? round_up(half, GRAIN) : half;
}

#endif
