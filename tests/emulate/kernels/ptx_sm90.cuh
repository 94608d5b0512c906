/* SPDX-License-Identifier: MIT */
/* Instead of kernels/ptx_sm90.cuh, as far as sliced/direct.cuh, mapped/ and the slicers use it. Products are
   formed when they are asked for. A warp forms 16 of the 64 rows. */
#ifndef GPB_PTX_SM90_CUH
#define GPB_PTX_SM90_CUH

#include <cmath>

#include "kernels/ptx.cuh"

/* The whole grid is a cluster, unless a test says how many blocks are. Where its blocks run one after the
   other they have their shared memory in one place, so what a block sends to others is there when the cluster
   runs once more. */
static unsigned gpb_emulate_cluster = ~0u;
static inline unsigned gpb_cluster_rank() { return blockIdx.x % gpb_emulate_cluster; }
static inline void gpb_cluster_sync() { gpb_emulate_cluster_barrier("a cluster's barrier"); }
static inline void gpb_cluster_store(unsigned at, unsigned, unsigned x)
{
    memcpy((void *)gpb_emulate_shared(at), &x, sizeof x);
}
/* Only of blocks that run together. */
static inline void gpb_cluster_store_async(unsigned at, unsigned rank, ulonglong2 x, unsigned barrier)
{
    if (at % 16) abort();
    gpb_emulate_mbarrier_store(barrier, rank, at, &x);
}

static inline void gpb_mbarrier_init(unsigned at, unsigned arrivals)
{
    gpb_emulate_mbarrier_init(at, arrivals);
}
static inline void gpb_mbarrier_publish() {}
static inline void gpb_mbarrier_expect(unsigned at, unsigned bytes)
{
    gpb_emulate_mbarrier_arrive(at, bytes);
}
static inline void gpb_mbarrier_arrive(unsigned at, unsigned) { gpb_emulate_mbarrier_arrive(at, 0); }
static inline void gpb_mbarrier_wait(unsigned at, unsigned parity) { gpb_emulate_mbarrier_wait(at, parity); }
static inline void gpb_mbarrier_wait_cluster(unsigned at, unsigned parity)
{
    gpb_emulate_mbarrier_wait(at, parity);
}
template <int> static inline void gpb_registers_fewer() {}
template <int> static inline void gpb_registers_more() {}

static inline void gpb_wgmma_publish() {}
static inline void gpb_wgmma_fence() {}
static inline void gpb_wgmma_commit() {}
template <int LEFT> static inline void gpb_wgmma_wait() {}
static inline unsigned gpb_wgmma_operand(unsigned at) { return at / 16; }       /* as far as it counts on */

/* TF32 as the tensor cores see it. */
static inline float gpb_emulate_tf32(unsigned bits)
{
    float x;
    bits &= 0xffffe000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^e, for exponents of normal doubles. */
static inline double gpb_emulate_power(int e)
{
    const uint64_t bits = (uint64_t)(1023 + e) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int gpb_emulate_exponent(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int e = (int)(bits >> 23 & 255);
    return x == 0 ? -1000 : e ? e - 127 : -126;
}

/* Towards zero. */
static inline float gpb_emulate_cut(double x)
{
    const float near = (float)x;
    return std::fabs((double)near) <= std::fabs(x) ? near : std::nextafter(near, 0.0f);
}

/* c + the sum of eight products, as Hopper's tensor cores form it (tests/gpu/test_accuracy agrees within
   3 %). All nine are aligned to the largest exponent (a product's exponent is the sum of its factors').
   What lies below 2^-25 of that is cut off, and so is their sum to 24 bits. */
static inline float gpb_emulate_dot(float c, const float (&x)[8], const int (&e)[8], const float (&y)[8])
{
    int most = gpb_emulate_exponent(c);
    double exact = c;
    for (int k = 0; k < 8; k++) {
        most = std::max(most, e[k] + gpb_emulate_exponent(y[k]));
        exact += (double)x[k] * y[k];
    }
    if (most < -500 || !std::isfinite(exact)) return (float)exact;
    const double unit = gpb_emulate_power(25 - most);
    int64_t sum = (int64_t)(c * unit);
    for (int k = 0; k < 8; k++) sum += (int64_t)((double)x[k] * y[k] * unit);
    return gpb_emulate_cut((double)sum * gpb_emulate_power(most - 25));
}

template <int N> struct gpb_wgmma {
    static inline void tf32(float (&d)[N / 2], const unsigned (&a)[4], unsigned b, int add)
    {
        const unsigned lane = threadIdx.x % 32;
        const char *all = gpb_emulate_show(a, sizeof a, "wgmma");
        float x[2][8];                                     /* this lane's row, and the one 8 below */
        int e[2][8];
        for (unsigned k = 0; k < 8; k++) {
            unsigned words[4];
            memcpy(words, all + (lane / 4 * 4 + k % 4) * GPB_EMULATE_SHOWN, sizeof words);
            for (int below = 0; below < 2; below++) {
                x[below][k] = gpb_emulate_tf32(words[below + k / 4 * 2]);
                e[below][k] = gpb_emulate_exponent(x[below][k]);
            }
        }
        for (int z = 0; z < N / 2; z++) {
            const unsigned col = z / 4 * 8 + lane % 4 * 2 + z % 2;
            float y[8];
            for (unsigned k = 0; k < 8; k++) {
                const unsigned at = b * 16 + col * 128 + k * 4, swizzled = at ^ (at >> 7 & 7) << 4;
                unsigned bits;
                memcpy(&bits, gpb_emulate_shared(swizzled), sizeof bits);
                y[k] = gpb_emulate_tf32(bits);
            }
            d[z] = gpb_emulate_dot(add ? d[z] : 0, x[z / 2 % 2], e[z / 2 % 2], y);
        }
        gpb_emulate_products += lane == 0;
    }
};

#endif
