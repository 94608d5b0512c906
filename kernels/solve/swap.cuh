/* SPDX-License-Identifier: MIT */
/* Row exchanges of many panels in one pass over the columns. Each block first finds out where every row that
   moves comes from. The moves of a panel are independent of each other, so a panel takes one step, and not
   one a pivot. Then a column's rows that move are read, all of them before any is written; where few move,
   of several columns at once. */
#ifndef GPB_SWAP_CUH
#define GPB_SWAP_CUH

#include "kernels/element.cuh"
#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve_args.h"

/* Pivots whose moves are in shared memory at once. */
constexpr int GPB_SWAP_CHUNK = 512;

/* Moves and widths of some panels. */
struct gpb_swap_chunk {
    gpb_row_move moves[2 * GPB_SWAP_CHUNK];
    int32_t width[GPB_SWAP_CHUNK], count;              /* of pivots */
};

static __device__ __forceinline__ void gpb_fetch_chunk(const gpb_swap_args &g, int32_t done,
                                                       gpb_swap_chunk &to)
{
    const int32_t left = g.last - g.first - done, count = min(left, GPB_SWAP_CHUNK);
    const int32_t low = g.backwards ? g.last - done - count : g.first + done;
    const int x = threadIdx.x;
#pragma unroll 1
    for (int i = x; i < 2 * count; i += GPB_SWAP_THREADS) to.moves[i] = g.moves[2 * (int64_t)low + i];
    if (x < count) to.width[x] = g.width[low + x];
    if (x == 0) to.count = count;
}

/* The chunk's panels, as far as they are whole. Returns the number of their pivots. */
static __device__ __forceinline__ int32_t gpb_apply_chunk(const gpb_swap_args &g, const gpb_swap_chunk &chunk,
                                                          uint32_t *source)
{
    const int x = threadIdx.x;
    int32_t here = 0;
    while (here < chunk.count) {
        const int32_t at = g.backwards ? chunk.count - here - 1 : here, n = chunk.width[at];
        if (here + n > chunk.count) break;                   /* it begins the next chunk */
        gpb_row_move move = { 0, 0 };
        uint32_t from = 0;
        if (x < 2 * n) {
            move = chunk.moves[2 * (g.backwards ? at + 1 - n : at) + x];
            if (g.backwards) move = { move.from, move.to };
            from = source[move.from];
        }
        __syncthreads();
        if (x < 2 * n) source[move.to] = from;
        __syncthreads();
        here += n;
    }
    return here;
}

/* Lists the rows that move in `moved` and returns their number; source[i] is the row whose contents row i
   gets. Of few moves only the rows that they name are looked at, which is most of what a launch for one panel
   takes where there are many rows. Of many, the list is in the order of the rows, and so are the accesses:
   else exchanges of 2048 pivots in 4096 rows took 107 us instead of 62 (H200). */
constexpr uint32_t GPB_SWAP_LISTED = 1u << 31;
static __device__ __forceinline__ int gpb_list_moved(const gpb_swap_args &g, uint32_t *source, int32_t *moved)
{
    __shared__ gpb_swap_chunk chunk;
    __shared__ int count;
    const int32_t pivots = g.last - g.first;
    const bool few = pivots <= GPB_SWAP_CHUNK && 32 * (int64_t)pivots < g.rows;
    const int x = threadIdx.x;
    if (x == 0) count = 0;
    gpb_fetch_chunk(g, 0, chunk);
    __syncthreads();
    if (few) {
        for (int i = x; i < 2 * pivots; i += GPB_SWAP_THREADS) {
            const gpb_row_move move = chunk.moves[i];
            source[move.to] = (uint32_t)move.to;
            source[move.from] = (uint32_t)move.from;
        }
        __syncthreads();
        gpb_apply_chunk(g, chunk, source);
        /* Some moves are there twice. Who comes first marks the row. */
        for (int i = x; i < 2 * pivots; i += GPB_SWAP_THREADS) {
            const uint32_t to = (uint32_t)(g.backwards ? chunk.moves[i].from : chunk.moves[i].to);
            const uint32_t from = atomicOr(&source[to], GPB_SWAP_LISTED);
            if (from != to && !(from & GPB_SWAP_LISTED)) moved[atomicAdd(&count, 1)] = (int32_t)to;
        }
    } else {
#pragma unroll 1
        for (int64_t i = x; i < g.rows; i += GPB_SWAP_THREADS) source[i] = (uint32_t)i;
        __syncthreads();
        for (int32_t done = gpb_apply_chunk(g, chunk, source); done < pivots;) {
            __syncthreads();                                 /* all have read the chunk before */
            gpb_fetch_chunk(g, done, chunk);
            __syncthreads();
            done += gpb_apply_chunk(g, chunk, source);
        }
#pragma unroll 1
        for (int64_t i = x; i < g.rows; i += GPB_SWAP_THREADS)
            if (source[i] != (uint32_t)i) moved[atomicAdd(&count, 1)] = (int32_t)i;
    }
    __syncthreads();
    return count;
}

/* What a thread moves at once: an element, or half of one of 16 bytes, of which it has no registers for so
   many. */
template <class T> struct gpb_word_of { using type = T; };
template <> struct gpb_word_of<double2> { using type = double; };

template <class T> static __device__ __forceinline__ void gpb_swap(const gpb_swap_args &g)
{
    using WORD = typename gpb_word_of<T>::type;
    constexpr int WORDS = sizeof(T) / sizeof(WORD), LEAST = 32;
    uint32_t *source = (uint32_t *)gpb_solve_memory();
    int32_t *moved = (int32_t *)source + g.rows;
    const int count = gpb_list_moved(g, source, moved);
    /* Threads for a column, and how many columns at once: no more than there are for each block, because
       accesses to as many places are slower on one SM than on several. */
    int each = GPB_SWAP_THREADS, columns = 1;
    while (each > LEAST && count <= each / 2) each /= 2;
    while (columns < GPB_SWAP_THREADS / each && (int64_t)columns * gridDim.x < g.cols) columns *= 2;
    const int row = (int)threadIdx.x % each, column = (int)threadIdx.x / each;
    for (int64_t first = (int64_t)blockIdx.x * columns; first < g.cols; first += (int64_t)gridDim.x * columns)
        for (int word = 0; word < WORDS; word++) {
            const int mine = column < columns && first + column < g.cols ? count : 0;
            WORD *a = (WORD *)g.a + (first + column) * g.lda * WORDS + word, x[GPB_SWAP_VALUES];
#pragma unroll
            for (int v = 0; v < GPB_SWAP_VALUES; v++) {
                if (v * each >= count) break;
                if (v * each + row < mine) {
                    const uint32_t from = source[moved[v * each + row]] & ~GPB_SWAP_LISTED;
                    x[v] = gpb_element_at(a + (int64_t)from * WORDS);
                }
            }
            __syncthreads();
#pragma unroll
            for (int v = 0; v < GPB_SWAP_VALUES; v++) {
                if (v * each >= count) break;
                if (v * each + row < mine) gpb_element_put(a + (int64_t)moved[v * each + row] * WORDS, x[v]);
            }
        }
}

#endif
