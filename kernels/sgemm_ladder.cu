/* SPDX-License-Identifier: MIT */
/* Image: steps 1 to 14, 16 and 17 of the ladder. */
#define GPB_MINE_sgemm_ladder ~, KEEP
#include "kernels/ladder/01_naive.cuh"
#include "kernels/ladder/02_coalesced.cuh"
#include "kernels/ladder/03_shared.cuh"
#include "kernels/ladder/04_four_results.cuh"
#include "kernels/ladder/05_padded.cuh"
#include "kernels/ladder/06_column8.cuh"
#include "kernels/ladder/07_registers.cuh"
#include "kernels/ladder/08_vector_loads.cuh"
#include "kernels/ladder/09_tile_1d.cuh"
#include "kernels/ladder/10_tile_2d.cuh"
#include "kernels/ladder/11_float4.cuh"
#include "kernels/ladder/12_conflict_free.cuh"
#include "kernels/ladder/13_double_buffer.cuh"
#include "kernels/ladder/14_deep_k.cuh"
#include "kernels/ladder/16_warp_tile.cuh"
#include "kernels/ladder/17_warp_strided.cuh"
#include "kernels/instance.cuh"
#undef GPB_MINE_sgemm_ladder
