/* SPDX-License-Identifier: MIT */
/* Step 14. Step 13 with tiles 16 deep: half the barriers, twice the work to hide a fetch behind, twice the
   registers that a fetch holds. The row of gemm.def is the only difference. */
#ifndef GPB_LADDER_14_DEEP_K_CUH
#define GPB_LADDER_14_DEEP_K_CUH

#include "kernels/ladder/13_double_buffer.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_deep_k(const gpb_tile<float> &t)
{
    static_assert(BK == 16, "twice step 13's depth");
    gpb_double_buffer<BM, BN, BK, STAGES, THREADS, SMEM>(t);
}

#endif
