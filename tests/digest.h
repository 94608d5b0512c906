/* SPDX-License-Identifier: MIT */
/* The digest of kernels/digest.h word by word: what the host's code, the device's and the software libcuda's
   are compared with, or made of. Powers instead of Horner's rule, no vectors. For C and C++. */
#ifndef GPB_TESTS_DIGEST_H
#define GPB_TESTS_DIGEST_H

#include "kernels/digest.h"

/* The value of that pass for blocks [first, last) of a matrix of elements of so many words, counted from
   block `first` on. */
static inline uint64_t gpb_digest_by_words(const gpb_digest_key *key, int pass, const uint32_t *a,
                                           int64_t unit, int64_t rows, int64_t ld, char uplo, int64_t first,
                                           int64_t last)
{
    const int64_t blocks = gpb_digest_blocks(rows, 4 * unit);
    uint64_t power = 1, value = 0;
    for (int64_t at = first; at < last; at++) {
        const int64_t col = at / blocks, before = at % blocks * GPB_DIGEST_WORDS;
        const int64_t from = (uplo == 'L' ? col : 0) * unit + before;
        const int64_t end = (uplo == 'U' ? col + 1 : rows) * unit;
        uint64_t sum = 0;
        for (int64_t i = 0; i < GPB_DIGEST_WORDS && from + i < end; i += 2) {
            const uint32_t *w = a + col * ld * unit + from + i, *k = key->word + i + 2 * pass;
            const uint32_t low = w[0] + k[0], high = (from + i + 1 < end ? w[1] : 0) + k[1];
            sum += (uint64_t)low * high;
        }
        value = gpb_digest_multiply_add(power, sum & UINT32_MAX, value);
        power = gpb_digest_multiply_add(power, key->point[pass], 0);
        value = gpb_digest_multiply_add(power, sum >> 32, value);
        power = gpb_digest_multiply_add(power, key->point[pass], 0);
    }
    return value;
}

#endif
