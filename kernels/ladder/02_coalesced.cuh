/* SPDX-License-Identifier: MIT */
/* Step 2. Step 1 with rows and columns of the thread block exchanged: neighbouring threads walk down a column
   of C, which is contiguous. A warp now reads one element of B for all its threads and 32 neighbours of A,
   and writes 32 neighbours of C, 128 bytes at once. */
#ifndef GPB_LADDER_02_COALESCED_CUH
#define GPB_LADDER_02_COALESCED_CUH

#include "kernels/epilogue.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_coalesced(const gpb_tile<float> &t)
{
    static_assert(THREADS == BM * BN, "one result a thread");
    const int64_t i = t.i0 + threadIdx.x % BM, j = t.j0 + threadIdx.x / BM;
    if (i >= t.g.m || j >= t.g.n)
        return;
    float acc = 0;
    for (int64_t p = 0; p < t.k; p++)
        acc += t.a[i * t.g.rsa + p * t.g.csa] * t.b[p * t.g.rsb + j * t.g.csb];
    gpb_store(gpb_target_of(t), i, j, acc);
}

#endif
