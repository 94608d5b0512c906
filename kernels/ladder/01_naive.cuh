/* SPDX-License-Identifier: MIT */
/* Step 1. One result a thread, straight from the definition. Neighbouring threads walk along a row of C, so
   they read B and write C a whole column apart, and each access of a warp touches 32 separate sectors of
   memory. */
#ifndef GPB_LADDER_01_NAIVE_CUH
#define GPB_LADDER_01_NAIVE_CUH

#include "kernels/epilogue.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_naive(const gpb_tile<float> &t)
{
    static_assert(THREADS == BM * BN, "one result a thread");
    const int64_t i = t.i0 + threadIdx.x / BN, j = t.j0 + threadIdx.x % BN;
    if (i >= t.g.m || j >= t.g.n)
        return;
    float acc = 0;
    for (int64_t p = 0; p < t.k; p++)
        acc += t.a[i * t.g.rsa + p * t.g.csa] * t.b[p * t.g.rsb + j * t.g.csb];
    gpb_store(gpb_target_of(t), i, j, acc);
}

#endif
