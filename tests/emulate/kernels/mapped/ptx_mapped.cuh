/* SPDX-License-Identifier: MIT */
/* Instead of kernels/mapped/ptx_mapped.cuh: what the stores of these kernels need. Their products are not
   formed here, so the rest is only declared. */
#ifndef GPB_MAPPED_PTX_CUH
#define GPB_MAPPED_PTX_CUH

#include "kernels/gemm_args.h"
#include "kernels/ptx_sm90.cuh"

void gpb_tensor_copy(unsigned to, const gpb_tensor_map *map, int x, int y, int z, unsigned barrier);
void gpb_tensor_multicast(unsigned to, const gpb_tensor_map *map, int x, int y, int z, unsigned barrier,
                          uint16_t mask);
void gpb_dmma16(double *c, const double (&a)[8], const double (&b)[4]);
void gpb_mbarrier_init(unsigned barrier, unsigned arrivals);
void gpb_mbarrier_publish();
void gpb_mbarrier_expect(unsigned barrier, unsigned bytes);
void gpb_mbarrier_arrive(unsigned barrier, unsigned rank);
void gpb_mbarrier_wait(unsigned barrier, unsigned parity);
template <int N> void gpb_registers_fewer();
template <int N> void gpb_registers_more();

#endif
