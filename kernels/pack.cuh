/* SPDX-License-Identifier: MIT */
/* Packing copies operands of any strides to padded workspaces. Unpacking copies results from such a workspace
   to C. Arguments are in gemm_args.h, launches in names.h. */
#ifndef GPB_PACK_CUH
#define GPB_PACK_CUH

#include "kernels/element.cuh"
#include "kernels/gemm_args.h"
#include "kernels/names.h"

constexpr int GPB_PACK_STEP = GPB_PACK_THREADS / GPB_PACK_TILE;    /* columns that a block covers at once */

/* Reads along the dimension of the source that is contiguous, transposes the tile in shared memory if need
   be, and writes along columns. */
template <class T> static __device__ __forceinline__ void gpb_pack(const gpb_pack_args &g)
{
    __shared__ T tile[GPB_PACK_TILE][GPB_PACK_TILE + 1];       /* [column][row] */
    const unsigned tiles_down = (unsigned)((g.rows_padded + GPB_PACK_TILE - 1) / GPB_PACK_TILE);
    const int64_t i0 = (int64_t)(blockIdx.x % tiles_down) * GPB_PACK_TILE,
                  j0 = (int64_t)(blockIdx.x / tiles_down) * GPB_PACK_TILE;
    const int x = threadIdx.x % GPB_PACK_TILE, y = threadIdx.x / GPB_PACK_TILE;
    const bool across = g.cs == 1 && g.rs != 1;
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const T *src = g.src_items ? (const T *)g.src_items[l] : (const T *)g.src + l * g.stride_src;
        T *dst = (T *)g.dst + l * g.stride_dst;
#pragma unroll
        for (int z = y; z < GPB_PACK_TILE; z += GPB_PACK_STEP) {
            const int row = across ? z : x, col = across ? x : z;
            const int64_t i = i0 + row, j = j0 + col;
            tile[col][row] = i < g.rows && j < g.cols ? gpb_element_at(src + i * g.rs + j * g.cs) : T();
        }
        __syncthreads();
#pragma unroll
        for (int z = y; z < GPB_PACK_TILE; z += GPB_PACK_STEP)
            if (i0 + x < g.rows_padded && j0 + z < g.cols_padded)
                dst[i0 + x + (j0 + z) * g.ld] = tile[z][x];
        __syncthreads();
    }
}

template <class T> static __device__ __forceinline__ void gpb_unpack(const gpb_unpack_args &g)
{
    const unsigned tiles_down = (unsigned)((g.m + GPB_PACK_TILE - 1) / GPB_PACK_TILE);
    const int64_t i = (int64_t)(blockIdx.x % tiles_down) * GPB_PACK_TILE + threadIdx.x % GPB_PACK_TILE;
    const int64_t j0 = (int64_t)(blockIdx.x / tiles_down) * GPB_PACK_TILE + threadIdx.x / GPB_PACK_TILE;
    const T beta = gpb_scalar<T>::of(g.beta);
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        const T *w = (const T *)g.w + l * g.stride_w;
        T *c = g.c_items ? (T *)g.c_items[l] : (T *)g.c + l * g.stride_c;
#pragma unroll
        for (int z = 0; z < GPB_PACK_TILE; z += GPB_PACK_STEP) {
            const int64_t j = j0 + z, below = i + g.row0 - (j + g.col0);
            if (i < g.m && j < g.n && (g.uplo == 'G' || (g.uplo == 'U' ? below <= 0 : below >= 0))) {
                const bool real = g.hermitian && below == 0;
                T result = w[i + j * g.ldw], *to = c + i + j * g.ldc;
                if (!gpb_is_zero(beta)) {
                    const T old = gpb_element_at(to);
                    result = gpb_sum(result, g.hermitian ? gpb_times_real(g.beta[0], old)
                                                         : gpb_scaled(beta, old));
                }
                gpb_element_put(to, real ? gpb_only_real(result) : result);
            }
        }
    }
}

/* gpb_<p>pack and gpb_<p>unpack. */
#define GPB_PACK_KERNELS(p)                                                                    \
    extern "C" __global__ void __launch_bounds__(GPB_PACK_THREADS)                             \
    GPB_PACK_SYMBOL(p)(const __grid_constant__ gpb_pack_args g) { gpb_pack<gpb_type_##p>(g); } \
    extern "C" __global__ void __launch_bounds__(GPB_PACK_THREADS)                             \
    GPB_UNPACK_SYMBOL(p)(const __grid_constant__ gpb_unpack_args g) { gpb_unpack<gpb_type_##p>(g); }

#endif
