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
template <class W> static inline W gpb_load_anew(const W *from)
{
    gpb_emulate_pause();
    return *from;
}
static inline void gpb_store_now(uint64_t *to, uint64_t x) { *to = x; }

#endif
