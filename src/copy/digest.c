/* SPDX-License-Identifier: MIT */
/* See digest.h. */
#include "src/copy/digest.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

static gpb_digest_key key;
static bool drawn;

static void draw(void)
{
    char *to = (char *)&key;
    size_t there = 0;
    for (ssize_t some = 1; there < sizeof key && some > 0; there += some > 0 ? (size_t)some : 0)
        some = getrandom(to + there, sizeof key - there, GRND_NONBLOCK);
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) key.point[pass] %= GPB_DIGEST_PRIME;
    drawn = there == sizeof key;
}

const gpb_digest_key *gpb_digest_own_key(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw);
    return drawn ? &key : NULL;
}

/* ---- the sums of a block. Each pass takes an addition, a shift, a multiplication and an addition for every
   two words, or for every eight with AVX2. */

/* From word `at` on, an even number. */
static void sum_words(const char *w, int64_t at, int64_t words, uint64_t sum[GPB_DIGEST_PASSES])
{
    for (; at < words; at += 2) {
        uint32_t x[2] = { 0 };
        memcpy(x, w + 4 * at, words - at == 1 ? 4 : 8);
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
            const uint32_t *k = key.word + at + 2 * pass;
            sum[pass] += (uint64_t)(x[0] + k[0]) * (uint32_t)(x[1] + k[1]);
        }
    }
}

__attribute__((target("avx2"))) static void sum_block_avx2(const char *w, int64_t words,
                                                           uint64_t sum[GPB_DIGEST_PASSES])
{
    enum { STEP = 8 };
    __m256i sums[GPB_DIGEST_PASSES] = { 0 };
    int64_t at = 0;
    for (; at + STEP <= words; at += STEP) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(w + 4 * at));
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
            const void *k = key.word + at + 2 * pass;
            const __m256i y = _mm256_add_epi32(x, _mm256_loadu_si256(k));
            sums[pass] = _mm256_add_epi64(sums[pass], _mm256_mul_epu32(y, _mm256_srli_epi64(y, 32)));
        }
    }
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
        uint64_t four[4];
        _mm256_storeu_si256((__m256i *)(void *)four, sums[pass]);
        sum[pass] = four[0] + four[1] + four[2] + four[3];
    }
    sum_words(w, at, words, sum);
}

static void sum_block(const char *w, int64_t words, uint64_t sum[GPB_DIGEST_PASSES])
{
    memset(sum, 0, GPB_DIGEST_PASSES * sizeof *sum);
    if (__builtin_cpu_supports("avx2")) sum_block_avx2(w, words, sum);
    else sum_words(w, 0, words, sum);
}

/* ---- digests */

/* x to that power, modulo the prime. */
static uint64_t power(uint64_t x, int64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent /= 2, x = gpb_digest_multiply_add(x, x, 0))
        if (exponent % 2) result = gpb_digest_multiply_add(result, x, 0);
    return result;
}

void gpb_digest_join(gpb_digest *to, const uint64_t (*polynomials)[GPB_DIGEST_PASSES], int64_t count,
                     int64_t each)
{
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
        const uint64_t factor = power(key.point[pass], 2 * each);
        uint64_t value = 0;
        for (int64_t i = count - 1; i >= 0; i--)
            value = gpb_digest_multiply_add(value, factor, polynomials[i][pass]);
        to->value[pass] = value;
    }
}

/* Adds the polynomials of blocks from number `first` on. */
static void add(gpb_digest *to, const uint64_t polynomial[GPB_DIGEST_PASSES], int64_t first)
{
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
        const uint64_t factor = power(key.point[pass], 2 * first);
        uint64_t now = atomic_load_explicit(&to->value[pass], memory_order_relaxed), next;
        do next = gpb_digest_multiply_add(polynomial[pass], factor, now);
        while (!atomic_compare_exchange_weak(&to->value[pass], &now, next));
    }
}

void gpb_digest_columns(const gpb_digest_job *job)
{
    const int64_t e = (int64_t)job->element, blocks = gpb_digest_blocks(job->rows, e);
    uint64_t polynomial[GPB_DIGEST_PASSES] = { 0 }, sum[GPB_DIGEST_PASSES];
    for (int64_t col = job->last - 1; col >= job->first; col--) {
        const int64_t row = gpb_digest_first_row(job->uplo, col);
        const int64_t rows = gpb_digest_end_row(job->uplo, job->rows, col) - row;
        const char *column = job->a + (row + col * job->ld) * e;
        for (int64_t block = blocks - 1; block >= 0; block--) {
            const int64_t words = gpb_digest_block_words(rows * (e / 4), block);
            sum_block(column + 4 * block * GPB_DIGEST_WORDS, words, sum);
            for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++)
                polynomial[pass] = gpb_digest_fold(polynomial[pass], sum[pass], key.point[pass]);
        }
    }
    add(job->to, polynomial, job->first * blocks);
}
