/* SPDX-License-Identifier: MIT */
/* PTX wrappers for mapped/: sm_90. */
#ifndef GPB_MAPPED_PTX_CUH
#define GPB_MAPPED_PTX_CUH

#include "kernels/gemm_args.h"
#include "kernels/ptx_sm90.cuh"

/* The shared memory that the launch asked for. */
static __device__ __forceinline__ void *gpb_mapped_memory()
{
    extern __shared__ char gpb_mapped_shared[];
    return gpb_mapped_shared;
}

/* Fetches a map before the first copy wants it. */
static __device__ __forceinline__ void gpb_tensor_prefetch(const gpb_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

/* A tensor copy, global to shared: the box at x, y, line, z of the map. What lies outside the map becomes 0,
   and counts at the barrier like the rest. To this block, or to the same address in every block of `mask`. */
static __device__ __forceinline__ void gpb_tensor_copy(unsigned to, const gpb_tensor_map *map, int x, int y,
                                                       int line, int z, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(map), "r"(x), "r"(y), "r"(line), "r"(z), "r"(barrier) : "memory");
}
static __device__ __forceinline__ void gpb_tensor_multicast(unsigned to, const gpb_tensor_map *map, int x,
                                                            int y, int line, int z, unsigned barrier,
                                                            uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
                 :: "r"(to), "l"(map), "r"(x), "r"(y), "r"(line), "r"(z), "r"(barrier), "h"(mask) : "memory");
}

/* c += a b on the FP64 tensor cores, 16 x 8 x 16. With lane = 4 g + t and some order of the 16 k in which
   k(h) is the lane's h-th of four: a[2h] = A(g, k(h)), a[2h + 1] = A(g + 8, k(h)), b[h] = B(k(h), g); c as of
   gpb_dmma (ptx_dmma.cuh). Which k these are is no matter, as long as both operands agree. Each
   sum is a chain of FMAs. */
static __device__ __forceinline__ void gpb_dmma16(double *c, const double (&a)[8], const double (&b)[4])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
                   "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

#endif
