/* SPDX-License-Identifier: MIT */
/* A ring of stages in shared memory, which a producer fills and consumers empty (Hopper). */
#ifndef GPB_RING_CUH
#define GPB_RING_CUH

#include "kernels/ptx_sm90.cuh"

/* SIZE: bytes of a stage. */
template <int STAGES, unsigned SIZE> struct gpb_ring {
    static constexpr unsigned BYTES = SIZE;
    unsigned data, full, empty;            /* shared-memory addresses of the stages and of their barriers */
    unsigned stage = 0, phase = 0;

    __device__ __forceinline__ unsigned at() const { return data + stage * BYTES; }
    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ __forceinline__ void wait_full() const { gpb_mbarrier_wait(full + stage * 8, phase); }
    __device__ __forceinline__ void wait_empty() const { gpb_mbarrier_wait(empty + stage * 8, phase ^ 1); }
};

#endif
