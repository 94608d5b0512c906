/* SPDX-License-Identifier: MIT */
/* Instead of kernels/mapped/ptx_mapped.cuh. */
#ifndef GPB_MAPPED_PTX_CUH
#define GPB_MAPPED_PTX_CUH

#include <cmath>
#include <cstdlib>

#include "kernels/gemm_args.h"
#include "kernels/ptx_sm90.cuh"

alignas(1024) static char gpb_mapped_shared[232448];    /* 227 KB */
static inline void *gpb_mapped_memory() { return gpb_mapped_shared; }

/* What a map of the emulation holds: of real numbers, `stride` of which lead to the next of the second, the
   third and the fourth dimension, and boxes of 16 of the first. */
struct gpb_emulate_map {
    const double *at;
    int64_t extent[4], stride[3];
    int box[2];                            /* of the second and the third */
};

static inline void gpb_tensor_prefetch(const gpb_tensor_map *) {}

/* Line by line, 16 bytes at a time, each to its place in the swizzle. */
static inline void gpb_tensor_copy(unsigned to, const gpb_tensor_map *map, int x, int y, int line, int z,
                                   unsigned barrier)
{
    gpb_emulate_map m;
    memcpy(&m, map, sizeof m);
    if (to % 1024 || x % 2) abort();
    for (int number = 0; number < m.box[0] * m.box[1]; number++)
        for (int chunk = 0; chunk < 8; chunk++) {
            const int64_t i = x + chunk * 2, j = y + number % m.box[0], l = line + number / m.box[0];
            const unsigned at = to + (unsigned)(number * GPB_MAPPED_LINE + (chunk ^ number % 8) * 16);
            const bool inside = j < m.extent[1] && l < m.extent[2] && z < m.extent[3];
            const int64_t left = inside ? m.extent[0] - i : 0;
            const double *from = m.at + i + j * m.stride[0] + l * m.stride[1] + z * m.stride[2];
            for (int half = 0; half < 2; half++)
                gpb_emulate_mbarrier_copy(barrier, (char *)gpb_emulate_shared(at) + half * 8,
                                          half < left ? (const char *)(from + half) : NULL, 8);
        }
}
/* Blocks are emulated one after the other, so there are no clusters. */
static inline void gpb_tensor_multicast(unsigned, const gpb_tensor_map *, int, int, int, int, unsigned,
                                        uint16_t)
{
    abort();
}

/* As gpb_dmma of emulate's ptx_dmma.cuh. */
static inline void gpb_dmma16(double *c, const double (&a)[8], const double (&b)[4])
{
    double mine[12];
    memcpy(mine, a, sizeof a);
    memcpy(mine + 8, b, sizeof b);
    const char *all = gpb_emulate_show(mine, sizeof mine, "dmma16");
    auto of = [&](unsigned lane, int x) {
        double value;
        memcpy(&value, all + lane * GPB_EMULATE_SHOWN + x * sizeof value, sizeof value);
        return value;
    };
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    gpb_emulate_products++;
    for (unsigned x = 0; x < 4; x++)
        for (unsigned q = 0; q < 16; q++)
            c[x] = std::fma(of(4 * g + q % 4, (int)(2 * (q / 4) + x / 2)),
                            of(4 * (2 * t + x % 2) + q % 4, 8 + (int)(q / 4)), c[x]);
}

#endif
