/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx_sm90.cuh, as far as split/direct.cuh uses it. Products are formed when they are asked for, a warp's 16 of the 64 rows
   by itself. */
#ifndef GPB_PTX_SM90_CUH
#define GPB_PTX_SM90_CUH

#include "kernels/ptx.cuh"

static inline void gpb_wgmma_publish() {}
static inline void gpb_wgmma_fence() {}
static inline void gpb_wgmma_commit() {}
template <int LEFT> static inline void gpb_wgmma_wait() {}
static inline uint64_t gpb_wgmma_operand_128(unsigned at) { return at; }

/* TF32 as the tensor cores see it. */
static inline double gpb_emulate_tf32(unsigned bits)
{
    float x;
    bits &= 0xffffe000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sums exact, as far as double is, rounded once. */
template <int N> struct gpb_wgmma {
    static inline void tf32(float (&d)[N / 2], const unsigned (&a)[4], uint64_t b, int add)
    {
        const unsigned lane = threadIdx.x % 32;
        const char *all = gpb_emulate_show(a, sizeof a, "wgmma");
        double x[2][8];                                    /* this lane's row, and the one 8 below */
        for (unsigned k = 0; k < 8; k++) {
            unsigned words[4];
            memcpy(words, all + (lane / 4 * 4 + k % 4) * GPB_EMULATE_SHOWN, sizeof words);
            for (int below = 0; below < 2; below++) x[below][k] = gpb_emulate_tf32(words[below + k / 4 * 2]);
        }
        for (int z = 0; z < N / 2; z++) {
            const unsigned col = z / 4 * 8 + lane % 4 * 2 + z % 2;
            double sum = add ? (double)d[z] : 0;
            for (unsigned k = 0; k < 8; k++) {
                const unsigned at = (unsigned)b + col * 128 + k * 4, swizzled = at ^ (at >> 7 & 7) << 4;
                unsigned bits;
                memcpy(&bits, gpb_emulate_shared(swizzled), sizeof bits);
                sum += x[z / 2 % 2][k] * gpb_emulate_tf32(bits);
            }
            d[z] = (float)sum;
        }
        gpb_emulate_products += lane == 0;
    }
};

#endif
