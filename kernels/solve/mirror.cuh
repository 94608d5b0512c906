/* SPDX-License-Identifier: MIT */
/* All of a symmetric or Hermitian matrix of which one triangle is stored, for the kernels of products, which
   know no triangles. Tiles of the triangle are read once, and written to both their places. */
#ifndef GPB_SOLVE_MIRROR_CUH
#define GPB_SOLVE_MIRROR_CUH

#include "kernels/element.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_mirror(const gpb_mirror_args &g)
{
    constexpr int TILE = GPB_MIRROR_TILE, STEP = GPB_MIRROR_THREADS / TILE;
    __shared__ T tile[TILE][TILE + 1];                         /* [column][row] */
    const int64_t tiles = (g.n + TILE - 1) / TILE, down = blockIdx.x % tiles, across = blockIdx.x / tiles;
    if (g.lower ? down < across : down > across) return;
    const int64_t i0 = down * TILE, j0 = across * TILE;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
#pragma unroll
    for (int z = y; z < TILE; z += STEP) {
        const int64_t i = i0 + x, j = j0 + z;
        if (i >= g.n || j >= g.n || (g.lower ? i < j : i > j)) continue;
        T one = gpb_element_at((const T *)g.a + i + j * g.lda);
        if (g.hermitian && i == j) one = gpb_only_real(one);
        tile[z][x] = one;
        ((T *)g.to)[i + j * g.ldto] = one;
    }
    __syncthreads();
#pragma unroll
    for (int z = y; z < TILE; z += STEP) {
        const int64_t i = i0 + z, j = j0 + x;
        if (i >= g.n || j >= g.n || (g.lower ? i <= j : i >= j)) continue;
        ((T *)g.to)[j + i * g.ldto] = gpb_conj_if(g.hermitian, tile[x][z]);
    }
}

#endif
