/* SPDX-License-Identifier: MIT */
/* gpb_spack and gpb_sunpack: operands of any strides to padded workspaces, results home; gpb_ssplit: operands to FP16 slices.
   Arguments in gemm_args.h and split.h, launch in names.h. */
#ifndef GPB_PACK_CUH
#define GPB_PACK_CUH

#include "kernels/gemm_args.h"
#include "kernels/names.h"
#include "kernels/split/slices.cuh"

constexpr int GPB_PACK_STEP = GPB_PACK_THREADS / GPB_PACK_TILE;    /* columns that the block's threads cover at once */

/* Reads along whichever dimension of the source is contiguous, turns the tile in shared memory, writes down the columns. */
extern "C" __global__ void __launch_bounds__(GPB_PACK_THREADS) GPB_PACK_SYMBOL(s)(const __grid_constant__ gpb_pack_args g)
{
    __shared__ float tile[GPB_PACK_TILE][GPB_PACK_TILE + 1];       /* [column][row] */
    const unsigned tiles_down = (unsigned)((g.rows_padded + GPB_PACK_TILE - 1) / GPB_PACK_TILE);
    const int64_t i0 = (int64_t)(blockIdx.x % tiles_down) * GPB_PACK_TILE, j0 = (int64_t)(blockIdx.x / tiles_down) * GPB_PACK_TILE;
    const int x = threadIdx.x % GPB_PACK_TILE, y = threadIdx.x / GPB_PACK_TILE;
    const bool across = g.cs == 1 && g.rs != 1;
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const float *src = g.src_items ? (const float *)g.src_items[l] : (const float *)g.src + l * g.stride_src;
        float *dst = (float *)g.dst + l * g.stride_dst;
#pragma unroll
        for (int z = y; z < GPB_PACK_TILE; z += GPB_PACK_STEP) {
            const int row = across ? z : x, col = across ? x : z;
            const int64_t i = i0 + row, j = j0 + col;
            tile[col][row] = i < g.rows && j < g.cols ? src[i * g.rs + j * g.cs] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int z = y; z < GPB_PACK_TILE; z += GPB_PACK_STEP)
            if (i0 + x < g.rows_padded && j0 + z < g.cols_padded)
                dst[i0 + x + (j0 + z) * g.ld] = tile[z][x];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(GPB_PACK_THREADS) GPB_UNPACK_SYMBOL(s)(const __grid_constant__ gpb_unpack_args g)
{
    const unsigned tiles_down = (unsigned)((g.m + GPB_PACK_TILE - 1) / GPB_PACK_TILE);
    const int64_t i = (int64_t)(blockIdx.x % tiles_down) * GPB_PACK_TILE + threadIdx.x % GPB_PACK_TILE;
    const int64_t j0 = (int64_t)(blockIdx.x / tiles_down) * GPB_PACK_TILE + threadIdx.x / GPB_PACK_TILE;
    const float beta = (float)g.beta;
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const float *w = (const float *)g.w + l * g.stride_w;
        float *c = g.c_items ? (float *)g.c_items[l] : (float *)g.c + l * g.stride_c;
#pragma unroll
        for (int z = 0; z < GPB_PACK_TILE; z += GPB_PACK_STEP) {
            const int64_t j = j0 + z, below = i + g.row0 - (j + g.col0);
            if (i < g.m && j < g.n && (g.uplo == 'G' || (g.uplo == 'U' ? below <= 0 : below >= 0))) {
                const float result = w[i + j * g.ldw];
                float *to = c + i + j * g.ldc;
                *to = beta == 0 ? result : __fadd_rn(result, __fmul_rn(beta, *to));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(GPB_SPLIT_THREADS, 3) GPB_SPLIT_SYMBOL(s, split)(const __grid_constant__ gpb_split_args g)
{
    gpb_each_strip(g, blockIdx.x, [&](const gpb_split_operand &x, unsigned strip, int64_t l) {
        if (g.slices == 1) gpb_split_strip<1>(x, g.k, g.notice, strip, l);
        else if (g.slices == 2) gpb_split_strip<2>(x, g.k, g.notice, strip, l);
        else gpb_split_strip<3>(x, g.k, g.notice, strip, l);
    });
}

#endif
