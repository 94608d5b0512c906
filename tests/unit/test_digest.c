/* SPDX-License-Identifier: MIT */
/* Digests of the host's copy of a matrix: those that tests/digest.h has, however its columns are shared out,
   of any alignment, and nothing but the matrix is read. Any bit changes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/copy/digest.h"
#include "tests/digest.h"

static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

typedef struct matrix { int64_t rows, cols, ld, unit; char uplo; char *at; } matrix;

/* The buffer ends with the last element; in the gaps and the other triangle there is anything. */
static matrix make(int64_t rows, int64_t cols, int64_t unit, char uplo, int shift)
{
    matrix x = { rows, cols, rows + 3, unit, uplo, NULL };
    const size_t words = (size_t)(((cols - 1) * x.ld + rows) * unit);
    char *buffer = malloc(4 * words + (size_t)shift);
    assert_non_null(buffer);
    x.at = buffer + shift;
    for (size_t i = 0; i < words; i++) {
        const uint32_t word = (uint32_t)draw();
        memcpy(x.at + 4 * i, &word, sizeof word);
    }
    return x;
}

static gpb_digest_job job_of(const matrix *x, gpb_digest *to)
{
    return (gpb_digest_job){ .a = x->at, .rows = x->rows, .ld = x->ld, .last = x->cols,
                             .element = (size_t)(4 * x->unit), .uplo = x->uplo, .to = to };
}

/* In that many columns at a time, the last first. */
static void take(const matrix *x, int64_t each, uint64_t to[GPB_DIGEST_PASSES])
{
    gpb_digest digest = { 0 };
    gpb_digest_job job = job_of(x, &digest);
    for (int64_t first = (x->cols - 1) / each * each; first >= 0; first -= each) {
        job.first = first;
        job.last = first + each < x->cols ? first + each : x->cols;
        gpb_digest_columns(&job);
    }
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) to[pass] = digest.value[pass];
}

static void check(int64_t rows, int64_t cols, int64_t unit, char uplo, int shift)
{
    const gpb_digest_key *key = gpb_digest_own_key();
    matrix x = make(rows, cols, unit, uplo, shift);
    const size_t words = (size_t)(((cols - 1) * x.ld + rows) * unit);
    uint32_t *aligned = malloc(4 * words);
    assert_non_null(aligned);
    memcpy(aligned, x.at, 4 * words);
    uint64_t all[GPB_DIGEST_PASSES], parts[GPB_DIGEST_PASSES];
    take(&x, cols, all);
    take(&x, cols > 3 ? 3 : 1, parts);
    const int64_t blocks = cols * gpb_digest_blocks(rows, 4 * unit), each = blocks / 3 + 1;
    uint64_t polynomials[3][GPB_DIGEST_PASSES] = { 0 };
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
        const uint64_t want = gpb_digest_by_words(key, pass, aligned, unit, rows, x.ld, uplo, 0, blocks);
        assert_int_equal(all[pass], want);
        assert_int_equal(parts[pass], all[pass]);
        for (int64_t i = 0; i < 3 && i * each < blocks; i++)
            polynomials[i][pass] = gpb_digest_by_words(key, pass, aligned, unit, rows, x.ld, uplo, i * each,
                                                       (i + 1) * each < blocks ? (i + 1) * each : blocks);
    }
    gpb_digest joined;
    gpb_digest_join(&joined, (const void *)polynomials, (blocks + each - 1) / each, each);
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) assert_int_equal(joined.value[pass], all[pass]);
    free(aligned);
    free(x.at - shift);
}

static void test_shapes(void **state)
{
    (void)state;
    assert_non_null(gpb_digest_own_key());
    for (int64_t unit = 1; unit <= 4; unit *= 2)
        for (int shift = 0; shift < 8; shift += 4) {
            const int64_t heights[] = { 1, 2, 3, 7, 8, 9, 100, 1023, 1024, 1025, 2049, 4096, 4097, 9001 };
            for (size_t i = 0; i < sizeof heights / sizeof *heights; i++)
                check(heights[i], 5, unit, 'G', shift);
            for (int64_t n = 1; n < 40; n++) {
                check(n, n, unit, 'L', shift);
                check(n, n, unit, 'U', shift);
            }
            check(1100, 1100, unit, 'L', shift);
            check(1100, 1100, unit, 'U', shift);
        }
    check(500, 3, 2, 'G', 1);
}

/* Every pass sees every bit of every word. */
static void test_bits(void **state)
{
    (void)state;
    enum { SAMPLES = 2000 };
    const matrix x = make(5000, 3, 2, 'G', 0);
    uint64_t before[GPB_DIGEST_PASSES], after[GPB_DIGEST_PASSES];
    take(&x, 3, before);
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t word = (int64_t)(draw() % (uint64_t)(2 * x.rows)), col = (int64_t)(draw() % 3);
        char *byte = x.at + 4 * (col * x.ld * x.unit + word) + draw() % 4;
        const int bit = 1 << draw() % 8;
        *byte ^= (char)bit;
        take(&x, 3, after);
        *byte ^= (char)bit;
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) assert_int_not_equal(before[pass], after[pass]);
    }
    free(x.at);
}

/* Words, columns and blocks that change places; zeros that are added to another place. */
static void test_exchanges(void **state)
{
    (void)state;
    uint64_t before[GPB_DIGEST_PASSES], after[GPB_DIGEST_PASSES];
    const matrix x = make(9000, 2, 1, 'G', 0);
    uint32_t *w = (uint32_t *)(void *)x.at;
    const int64_t pairs[][2] = { { 0, 1 }, { 0, 2 }, { 1, 2 }, { 0, GPB_DIGEST_WORDS },
                                 { 4095, 8191 }, { 5, 5 + x.ld }, { 8999, x.ld } };
    take(&x, 2, before);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const uint32_t kept = w[pairs[i][0]];
        w[pairs[i][0]] = w[pairs[i][1]];
        w[pairs[i][1]] = kept;
        take(&x, 2, after);
        w[pairs[i][1]] = w[pairs[i][0]];
        w[pairs[i][0]] = kept;
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) assert_int_not_equal(before[pass], after[pass]);
    }
    free(x.at);
}

/* The numbers that Horner's rule meets stay below the prime. */
static void test_prime(void **state)
{
    (void)state;
    const uint64_t most = GPB_DIGEST_PRIME - 1, p = GPB_DIGEST_PRIME;
    assert_int_equal(gpb_digest_multiply_add(most, most, 0), 1);
    assert_int_equal(gpb_digest_multiply_add(most, most, most), 0);
    assert_int_equal(gpb_digest_multiply_add(most, 1, 1), 0);
    assert_int_equal(gpb_digest_multiply_add(0, most, most), most);
    assert_int_equal(gpb_digest_multiply_add(UINT64_C(1) << 60, 2, 0), 1);
    for (int i = 0; i < 100000; i++) {
        const uint64_t x = draw() % p, y = draw() % p, z = draw() % p;
        const uint64_t got = gpb_digest_multiply_add(x, y, z);
        assert_int_equal(got, (uint64_t)(((gpb_digest_product)x * y + z) % p));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_bits), cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_prime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
