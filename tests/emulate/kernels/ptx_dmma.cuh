/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx_dmma.cuh. */
#ifndef GPB_PTX_DMMA_CUH
#define GPB_PTX_DMMA_CUH

#include <cmath>

#include "kernels/ptx.cuh"

/* Each lane shows its parts of A and B, and computes its own four sums from what all have shown. */
static inline void gpb_dmma(double *c, const double *a, const double *b)
{
    const double mine[6] = { a[0], a[1], a[2], a[3], b[0], b[1] };
    const char *all = gpb_emulate_show(mine, sizeof mine, "dmma");
    auto of = [&](unsigned lane, int x) {
        double value;
        memcpy(&value, all + lane * GPB_EMULATE_SHOWN + x * sizeof value, sizeof value);
        return value;
    };
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    gpb_emulate_products++;
    for (unsigned x = 0; x < 4; x++) {
        const unsigned down = x / 2, column = 2 * t + x % 2;
        for (unsigned q = 0; q < 8; q++)
            c[x] = std::fma(of(4 * g + q % 4, (int)(down + q / 4 * 2)),
                            of(4 * column + q % 4, 4 + (int)(q / 4)), c[x]);
    }
}

#endif
