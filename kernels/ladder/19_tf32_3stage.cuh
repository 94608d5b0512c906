/* SPDX-License-Identifier: MIT */
/* Step 19. Step 18 with a third stage, so that two tiles are in flight, because the tensor cores are done
   with a tile before the next one arrives. */
#ifndef GPB_LADDER_19_TF32_3STAGE_CUH
#define GPB_LADDER_19_TF32_3STAGE_CUH

#include "kernels/ladder/18_tf32_2stage.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32_3stage(const gpb_tile<float> &t)
{
    static_assert(STAGES == 3, "one tile multiplied, two on their way");
    gpb_tf32<BM, BN, BK, STAGES, THREADS, SMEM>(t);
}

#endif
