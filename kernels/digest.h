/* SPDX-License-Identifier: MIT */
/* A digest of a matrix under a secret key. Host and device take it of their copies of one matrix, and if the
   digests are the same, so are the copies: two matrices of one shape that differ have the same digest with a
   probability below 2^-120 over the keys, whatever they hold, if it was chosen without the key. An undetected
   error of the memory is likelier.

   The column's elements are words of 32 bits. A block is GPB_DIGEST_WORDS of them, the column's last one
   fewer. Its sum is that of (w_2i + key_2i) (w_2i+1 + key_2i+1) modulo 2^64, the factors modulo 2^32 (NH of
   UMAC: Black, Halevi, Krawczyk, Krovetz, Rogaway, CRYPTO '99). There are GPB_DIGEST_PASSES of them, each
   with the key shifted by another two words (their Toeplitz construction), and two blocks that differ agree
   in all of them with a probability of 2^-32 to the power of the passes. The upper and lower halves of the
   sums of all blocks are the coefficients of a polynomial modulo 2^61 - 1, one for each pass, and the digest
   is its values at secret points. Of 2^22 blocks, 64 GiB of columns of 2048 doubles and more, two polynomials
   that differ have the same value at 2^23 of 2^61 points. So a pass is deceived with 2^-32 + 2^-38, and there
   are four. */
#ifndef GPB_DIGEST_H
#define GPB_DIGEST_H

#include <stdint.h>

enum {
    GPB_DIGEST_PASSES = 4,
    GPB_DIGEST_WORDS = 4096,
    GPB_DIGEST_KEYS = GPB_DIGEST_WORDS + 2 * (GPB_DIGEST_PASSES - 1)
};
#define GPB_DIGEST_PRIME ((UINT64_C(1) << 61) - 1)

typedef struct gpb_digest_key {
    uint64_t point[GPB_DIGEST_PASSES];      /* below the prime */
    uint32_t word[GPB_DIGEST_KEYS];
} gpb_digest_key;

__extension__ typedef unsigned __int128 gpb_digest_product;

#ifdef __CUDACC__
#define GPB_DIGEST_BOTH static __host__ __device__ __forceinline__
#else
#define GPB_DIGEST_BOTH static inline
#endif

/* Blocks of each column, those that a triangle leaves empty included: so block b of column j is the matrix's
   number j * blocks + b, in every shape. */
GPB_DIGEST_BOTH int64_t gpb_digest_blocks(int64_t rows, int64_t element)
{
    return (rows * element / 4 + GPB_DIGEST_WORDS - 1) / GPB_DIGEST_WORDS;
}

/* The rows of a column that belong to the matrix: 'U', 'L': those of its triangle; 'G': all. */
GPB_DIGEST_BOTH int64_t gpb_digest_first_row(char uplo, int64_t col) { return uplo == 'L' ? col : 0; }
GPB_DIGEST_BOTH int64_t gpb_digest_end_row(char uplo, int64_t rows, int64_t col)
{
    return uplo == 'U' && col + 1 < rows ? col + 1 : rows;
}

/* Words of a block of a column that has so many, from its first word on. */
GPB_DIGEST_BOTH int64_t gpb_digest_block_words(int64_t words, int64_t block)
{
    const int64_t left = words - block * GPB_DIGEST_WORDS;
    return left < 0 ? 0 : left < GPB_DIGEST_WORDS ? left : (int64_t)GPB_DIGEST_WORDS;
}

/* x y + z modulo the prime, for numbers below 2^61, which the result is, too. */
GPB_DIGEST_BOTH uint64_t gpb_digest_multiply_add(uint64_t x, uint64_t y, uint64_t z)
{
    const gpb_digest_product product = (gpb_digest_product)x * y + z;
    const uint64_t sum = (uint64_t)(product & GPB_DIGEST_PRIME) + (uint64_t)(product >> 61);
    return sum >= GPB_DIGEST_PRIME ? sum - GPB_DIGEST_PRIME : sum;
}

/* Horner's rule, from the last block to the first: the polynomial of the blocks from this one on, of that of
   the blocks behind it. */
GPB_DIGEST_BOTH uint64_t gpb_digest_fold(uint64_t behind, uint64_t sum, uint64_t point)
{
    const uint64_t upper = gpb_digest_multiply_add(behind, point, sum >> 32);
    return gpb_digest_multiply_add(upper, point, sum & UINT32_MAX);
}

#endif
