/* SPDX-License-Identifier: MIT */
/* The digest of a matrix (kernels/digest.h). A thread block has blocks of the matrix that follow each other,
   from the last to the first, and all of its threads sum up one at a time. The host puts the thread blocks'
   polynomials together. */
#ifndef GPB_SOLVE_DIGEST_CUH
#define GPB_SOLVE_DIGEST_CUH

#include "kernels/solve_args.h"

/* The words w[at] and w[at + 1], the second 0 if there is none. */
template <bool PAIRS>
static __device__ __forceinline__ uint2 gpb_digest_words(const uint32_t *w, int at, int words)
{
    if (PAIRS) return *(const uint2 *)(w + at);
    return make_uint2(w[at], at + 1 < words ? w[at + 1] : 0);
}

template <class T> static __device__ __forceinline__ void gpb_digest(const gpb_digest_args &g)
{
    constexpr int WARPS = GPB_DIGEST_THREADS / 32;
    __shared__ uint32_t key[GPB_DIGEST_KEYS];
    __shared__ uint64_t sums[2][GPB_DIGEST_PASSES][WARPS];
    const int thread = threadIdx.x;
    for (int i = thread; i < GPB_DIGEST_KEYS; i += GPB_DIGEST_THREADS) key[i] = g.key->word[i];
    __syncthreads();
    const int64_t blocks = gpb_digest_blocks(g.rows, sizeof(T));
    const int64_t first = blockIdx.x * g.each, all = blocks * g.cols;
    const int64_t last = first + g.each < all ? first + g.each : all;
    uint64_t polynomial = 0;                               /* of the thread's pass, if it has one */
    int turn = 0;
    for (int64_t at = last - 1; at >= first; at--, turn ^= 1) {
        const int64_t col = at / blocks, block = at % blocks;
        const int64_t row = gpb_digest_first_row(g.uplo, col);
        const int64_t rows = gpb_digest_end_row(g.uplo, g.rows, col) - row;
        const int words = (int)gpb_digest_block_words(rows * (int64_t)(sizeof(T) / 4), block);
        const uint32_t *w = (const uint32_t *)((const T *)g.a + row + col * g.lda) + block * GPB_DIGEST_WORDS;
        uint64_t sum[GPB_DIGEST_PASSES] = {};
        for (int i = 2 * thread; i < words; i += 2 * GPB_DIGEST_THREADS) {
            const uint2 x = gpb_digest_words<sizeof(T) % 8 == 0>(w, i, words);
#pragma unroll
            for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++)
                sum[pass] += (uint64_t)(x.x + key[i + 2 * pass]) * (uint32_t)(x.y + key[i + 2 * pass + 1]);
        }
#pragma unroll
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
            for (int lanes = 16; lanes; lanes /= 2)
                sum[pass] += __shfl_xor_sync(0xffffffffu, (unsigned long long)sum[pass], lanes);
            if (thread % 32 == 0) sums[turn][pass][thread / 32] = sum[pass];
        }
        /* One barrier a block suffices, because the next one has other sums. */
        __syncthreads();
        if (thread < GPB_DIGEST_PASSES) {
            uint64_t of_block = 0;
            for (int warp = 0; warp < WARPS; warp++) of_block += sums[turn][thread][warp];
            polynomial = gpb_digest_fold(polynomial, of_block, g.key->point[thread]);
        }
    }
    if (thread < GPB_DIGEST_PASSES) g.polynomials[blockIdx.x * GPB_DIGEST_PASSES + thread] = polynomial;
}

#endif
