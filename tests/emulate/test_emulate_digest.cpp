/* SPDX-License-Identifier: MIT */
/* The device's digest of a matrix on the CPU (emulate.h), against tests/digest.h: every part of it, in four
   types, of columns of one block and of several, of triangles, and in any number of thread blocks. */
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/element.cuh"
#include "kernels/solve/digest.cuh"
#include "tests/digest.h"

static std::mt19937_64 numbers(11);
static gpb_digest_args arguments;
template <class T> static void digest_thread() { gpb_digest<T>(arguments); }

template <class T> static int wrong(int64_t rows, int64_t cols, char uplo, int64_t each)
{
    const int64_t ld = rows + 8 / (int64_t)sizeof(float), unit = sizeof(T) / 4;
    std::vector<T> a((cols - 1) * ld + rows);
    uint32_t *words = (uint32_t *)a.data();
    for (size_t i = 0; i < a.size() * unit; i++) words[i] = (uint32_t)numbers();
    gpb_digest_key key;
    for (uint32_t &word : key.word) word = (uint32_t)numbers();
    for (uint64_t &point : key.point) point = numbers() % GPB_DIGEST_PRIME;
    const int64_t all = gpb_digest_blocks(rows, sizeof(T)) * cols, parts = (all + each - 1) / each;
    std::vector<uint64_t> polynomials(parts * GPB_DIGEST_PASSES, 7);
    arguments = gpb_digest_args();
    arguments.a = a.data();
    arguments.lda = ld;
    arguments.rows = rows;
    arguments.cols = cols;
    arguments.each = each;
    arguments.key = &key;
    arguments.polynomials = polynomials.data();
    arguments.uplo = uplo;
    int failures = gpb_emulate_run({ digest_thread<T>, { (unsigned)parts, 1, 1 }, GPB_DIGEST_THREADS, true,
                                     false, {}, {} });
    for (int64_t part = 0; part < parts; part++)
        for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
            const int64_t first = part * each, last = std::min(first + each, all);
            const uint64_t want = gpb_digest_by_words(&key, pass, words, unit, rows, ld, uplo, first, last);
            if (polynomials[part * GPB_DIGEST_PASSES + pass] == want) continue;
            if (failures++ < 3)
                printf("wrong: %lldx%lld %c, pass %d of part %lld\n", (long long)rows, (long long)cols, uplo,
                       pass, (long long)part);
        }
    return failures;
}

template <class T> static int all(const char *type)
{
    const int64_t of_block = GPB_DIGEST_WORDS * 4 / (int64_t)sizeof(T);
    int failures = 0;
    for (int64_t rows : { (int64_t)1, (int64_t)3, (int64_t)601, of_block, of_block + 1, 2 * of_block + 77 })
        for (int64_t each : { 1, 2, 5 }) failures += wrong<T>(rows, 4, 'G', each);
    for (char uplo : { 'L', 'U' }) failures += wrong<T>(33, 33, uplo, 7);
    failures += wrong<T>(of_block + 5, of_block / 100, 'G', 9);
    printf("%s: %s\n", type, failures ? "WRONG" : "ok");
    return failures;
}

int main()
{
    const int failures = all<float>("s") + all<double>("d") + all<float2>("c") + all<double2>("z");
    return failures > 0;
}
