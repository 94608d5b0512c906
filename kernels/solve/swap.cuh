/* SPDX-License-Identifier: MIT */
/* Row exchanges of many panels in one pass over the columns. Each block first finds out where every row comes
   from. The moves of a panel are independent of each other, so a panel takes one step, and not one a pivot.
   Then a column's rows that move are read, all of them before any is written. */
#ifndef GPB_SWAP_CUH
#define GPB_SWAP_CUH

#include "kernels/element.cuh"
#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve_args.h"

/* Pivots whose moves are in shared memory at once. */
constexpr int GPB_SWAP_CHUNK = 512;

/* source[i] = the row whose contents row i gets. */
static __device__ __forceinline__ void gpb_find_sources(const gpb_swap_args &g, int32_t *source)
{
    __shared__ gpb_row_move moves[2 * GPB_SWAP_CHUNK];
    __shared__ int32_t width[GPB_SWAP_CHUNK];
    const int x = threadIdx.x;
#pragma unroll 1
    for (int64_t i = x; i < g.rows; i += GPB_SWAP_THREADS) source[i] = (int32_t)i;
    for (int32_t done = 0; done < g.last - g.first;) {
        const int32_t left = g.last - g.first - done, count = min(left, GPB_SWAP_CHUNK);
        const int32_t low = g.backwards ? g.last - done - count : g.first + done;
        __syncthreads();                                     /* all have read the chunk before */
#pragma unroll 1
        for (int i = x; i < 2 * count; i += GPB_SWAP_THREADS) moves[i] = g.moves[2 * (int64_t)low + i];
        if (x < count) width[x] = g.width[low + x];
        __syncthreads();
        for (int32_t here = 0; here < count;) {
            const int32_t at = g.backwards ? count - here - 1 : here, n = width[at];
            if (here + n > count) break;                     /* it begins the next chunk */
            gpb_row_move move = { 0, 0 };
            int32_t from = 0;
            if (x < 2 * n) {
                move = moves[2 * (g.backwards ? at + 1 - n : at) + x];
                if (g.backwards) move = { move.from, move.to };
                from = source[move.from];
            }
            __syncthreads();
            if (x < 2 * n) source[move.to] = from;
            __syncthreads();
            here += n;
            done += n;
        }
    }
}

/* What a thread moves at once: an element, or half of one of 16 bytes, of which it has no registers for so
   many. */
template <class T> struct gpb_word_of { using type = T; };
template <> struct gpb_word_of<double2> { using type = double; };

template <class T> static __device__ __forceinline__ void gpb_swap(const gpb_swap_args &g)
{
    using WORD = typename gpb_word_of<T>::type;
    constexpr int WORDS = sizeof(T) / sizeof(WORD);
    __shared__ int count;
    int32_t *source = (int32_t *)gpb_solve_memory(), *moved = source + g.rows;
    if (threadIdx.x == 0) count = 0;
    gpb_find_sources(g, source);
#pragma unroll 1
    for (int64_t i = threadIdx.x; i < g.rows; i += GPB_SWAP_THREADS)
        if (source[i] != (int32_t)i) moved[atomicAdd(&count, 1)] = (int32_t)i;
    __syncthreads();
    for (int64_t col = blockIdx.x; col < g.cols; col += gridDim.x)
        for (int word = 0; word < WORDS; word++) {
            WORD *a = (WORD *)g.a + col * g.lda * WORDS + word, x[GPB_SWAP_VALUES];
#pragma unroll
            for (int v = 0; v < GPB_SWAP_VALUES; v++) {
                const int number = v * GPB_SWAP_THREADS + (int)threadIdx.x;
                if (v * GPB_SWAP_THREADS >= count) break;
                if (number < count)
                    x[v] = gpb_element_at(a + (int64_t)source[moved[number]] * WORDS);
            }
            __syncthreads();
#pragma unroll
            for (int v = 0; v < GPB_SWAP_VALUES; v++) {
                const int number = v * GPB_SWAP_THREADS + (int)threadIdx.x;
                if (v * GPB_SWAP_THREADS >= count) break;
                if (number < count) gpb_element_put(a + (int64_t)moved[number] * WORDS, x[v]);
            }
        }
}

#endif
