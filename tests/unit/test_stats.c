/* SPDX-License-Identifier: MIT */
/* Counters under threads, and the public way to read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "include/gpublas.h"
#include "src/service/stats.h"

enum { THREADS = 8, ROUNDS = 20000 };

/* Programs that were built before read these places: fields are added at the end alone. */
#define AT(field, offset) \
    _Static_assert(offsetof(gpublas_stats_t, field) == (offset), #field " of gpublas_stats_t has moved")
AT(calls, 0);
AT(gpu_calls, 8);
AT(host_calls, 16);
AT(failed_calls, 24);
AT(bytes_to_gpu, 32);
AT(bytes_from_gpu, 40);
AT(gpu_seconds, 48);
AT(gpu_flops, 56);
AT(wrong_calls, 64);
AT(host_seconds, 72);
AT(saved_seconds, 80);
AT(missed_seconds, 88);

static void *add(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        gpb_stats_add(&(gpublas_stats_t){
            .calls = 1, .gpu_calls = i % 2, .bytes_to_gpu = 1000, .gpu_seconds = 0.25, .gpu_flops = 3 });
        gpb_stats_host();
    }
    return unused;
}

static void sums_are_exact(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    gpublas_stats_t before, after;
    gpb_stats_read(&before);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, add, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    gpb_stats_add(&(gpublas_stats_t){
        .host_calls = 2, .failed_calls = 5, .bytes_from_gpu = UINT64_C(1) << 40, .host_seconds = 0.5,
        .saved_seconds = -0.25, .missed_seconds = 4 });
    gpb_stats_read(&after);
    assert_int_equal(after.calls - before.calls, 2 * THREADS * ROUNDS);
    assert_int_equal(after.gpu_calls - before.gpu_calls, THREADS * ROUNDS / 2);
    assert_int_equal(after.bytes_to_gpu - before.bytes_to_gpu, UINT64_C(1000) * THREADS * ROUNDS);
    assert_int_equal(after.host_calls - before.host_calls, THREADS * ROUNDS + 2);
    assert_int_equal(after.failed_calls - before.failed_calls, 5);
    assert_int_equal(after.bytes_from_gpu - before.bytes_from_gpu, UINT64_C(1) << 40);
    assert_true(after.gpu_seconds - before.gpu_seconds == 0.25 * THREADS * ROUNDS);
    assert_true(after.gpu_flops - before.gpu_flops == 3.0 * THREADS * ROUNDS);
    assert_true(after.host_seconds - before.host_seconds == 0.5);
    assert_true(after.saved_seconds - before.saved_seconds == -0.25);
    assert_true(after.missed_seconds - before.missed_seconds == 4);
}

static void public_copy(void **state)
{
    (void)state;
    struct { gpublas_stats_t stats; char guard[16]; } big, small;
    gpublas_stats_t whole;
    gpb_stats_read(&whole);
    memset(&big, 0x5a, sizeof big);
    memset(&small, 0x5a, sizeof small);
    /* A later, larger struct, of which the rest is left alone. */
    assert_int_equal(gpublas_stats(&big.stats, sizeof big), 0);
    assert_memory_equal(&big.stats, &whole, sizeof whole);
    for (size_t i = 0; i < sizeof big.guard; i++) assert_int_equal(big.guard[i], 0x5a);
    assert_int_equal(gpublas_stats(&small.stats, 16), 0);                  /* an earlier, smaller one */
    assert_memory_equal(&small.stats, &whole, 16);
    assert_int_equal(((unsigned char *)&small)[16], 0x5a);
    assert_int_equal(gpublas_stats(NULL, sizeof whole), -1);
    assert_string_equal(gpublas_version(), GPUBLAS_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_are_exact), cmocka_unit_test(public_copy) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
