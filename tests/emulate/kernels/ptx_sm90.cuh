/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx_sm90.cuh, as far as split/direct.cuh uses it. Products are formed when they are asked for, a warp's 16 of the 64 rows
   by itself. */
#ifndef GPB_PTX_SM90_CUH
#define GPB_PTX_SM90_CUH

#include "kernels/ptx.cuh"
#include "tests/emulate/cuda_fp16.h"

static inline void gpb_wgmma_publish() {}
static inline void gpb_wgmma_fence() {}
static inline void gpb_wgmma_commit() {}
template <int LEFT> static inline void gpb_wgmma_wait() {}
static inline uint64_t gpb_wgmma_operand(unsigned at) { return at; }

struct gpb_half_table {
    float value[65536];
    gpb_half_table()
    {
        for (int x = 0; x < 65536; x++) value[x] = gpb_half_to_float((uint16_t)x);
    }
};

/* Sums exact, as far as double is, rounded once. */
template <int N> struct gpb_wgmma {
    static inline void fp16(float (&d)[N / 2], const unsigned (&a)[4], uint64_t b, int add)
    {
        static const gpb_half_table half;
        const unsigned lane = threadIdx.x % 32;
        const char *all = gpb_emulate_show(a, sizeof a, "wgmma");
        double x[2][16];                                   /* this lane's row, and the one 8 below */
        for (int k = 0; k < 16; k++) {
            unsigned words[4];
            memcpy(words, all + (lane / 4 * 4 + k % 8 / 2) * GPB_EMULATE_SHOWN, sizeof words);
            for (int below = 0; below < 2; below++)
                x[below][k] = (double)half.value[words[below + k / 8 * 2] >> k % 2 * 16 & 0xffff];
        }
        for (int z = 0; z < N / 2; z++) {
            const unsigned col = z / 4 * 8 + lane % 4 * 2 + z % 2;
            double sum = add ? (double)d[z] : 0;
            for (unsigned k = 0; k < 16; k++) {
                const unsigned at = (unsigned)b + col * 64 + k * 2, swizzled = at ^ (at >> 7 & 3) << 4;
                sum += x[z / 2 % 2][k] * (double)half.value[*(const uint16_t *)gpb_emulate_shared(swizzled)];
            }
            d[z] = (float)sum;
        }
        gpb_emulate_products += lane == 0;
    }
};

#endif
