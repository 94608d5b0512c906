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

static inline unsigned gpb_shared_kept(const void *p) { return gpb_shared_address(p); }
template <class V> static inline void gpb_shared_get(V &to, unsigned at)
{
    if (at % sizeof to) abort();
    memcpy(&to, gpb_emulate_shared(at), sizeof to);
}
template <class V> static inline void gpb_shared_put(unsigned at, const V &x)
{
    if (at % sizeof x) abort();
    memcpy(gpb_emulate_shared(at), &x, sizeof x);
}

#endif
