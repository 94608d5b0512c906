/* SPDX-License-Identifier: MIT */
/* All of a symmetric or Hermitian matrix of which one triangle is stored, for the kernels of products, which
   know no triangles. Tiles of the triangle are read once, and written to both their places. A matrix may be
   made whole where it is, because only the thread that reads an element writes it again. */
#ifndef GPB_SOLVE_MIRROR_CUH
#define GPB_SOLVE_MIRROR_CUH

#include "kernels/element.cuh"
#include "kernels/solve_args.h"

template <class T> static __device__ __forceinline__ void gpb_mirror(const gpb_mirror_args &g)
{
    constexpr int TILE = GPB_MIRROR_TILE, STEP = GPB_MIRROR_THREADS / TILE;
    __shared__ T tile[TILE][TILE + 1];                         /* [column][row] */
    const int64_t tiles = (g.n + TILE - 1) / TILE, along = blockIdx.x % tiles, strip = blockIdx.x / tiles;
    if (along < strip) return;
    const int64_t i0 = (g.lower ? along : strip) * TILE, j0 = (g.lower ? strip : along) * TILE;
    const int64_t rows = g.lower ? g.n : g.first, cols = g.lower ? g.first : g.n;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
#pragma unroll
    for (int z = y; z < TILE; z += STEP) {
        const int64_t i = i0 + x, j = j0 + z;
        if (i >= rows || j >= cols || (g.lower ? i < j : i > j)) continue;
        T one = gpb_element_at((const T *)g.a + i + j * g.lda);
        if (g.hermitian && i == j) one = gpb_only_real(one);
        tile[z][x] = one;
        ((T *)g.to)[i + j * g.ldto] = one;
    }
    __syncthreads();
#pragma unroll
    for (int z = y; z < TILE; z += STEP) {
        const int64_t i = i0 + z, j = j0 + x;
        if (i >= rows || j >= cols || (g.lower ? i <= j : i >= j)) continue;
        ((T *)g.to)[j + i * g.ldto] = gpb_conj_if(g.hermitian, tile[x][z]);
    }
}

#endif
