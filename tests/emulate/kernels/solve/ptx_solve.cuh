/* SPDX-License-Identifier: MIT */
/* Instead of kernels/solve/ptx_solve.cuh. */
#ifndef GPB_PTX_SOLVE_CUH
#define GPB_PTX_SOLVE_CUH

#include "kernels/ptx.cuh"

static inline char *gpb_solve_memory()
{
    __shared__ __align__(1024) char gpb_solve_shared[GPB_EMULATE_SOLVE_SHARED];
    return gpb_solve_shared;
}
static inline uint32_t gpb_load_anew(const uint32_t *from)
{
    gpb_emulate_pause();
    return *from;
}

#endif
