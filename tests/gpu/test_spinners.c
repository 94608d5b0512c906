/* SPDX-License-Identifier: MIT */
/* Beside threads of the program that spin, as PyTorch's do between its operators: the crew notices that they
   hold the cores, and that they have gone. Without such threads it notices nothing, whatever other processes
   do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/placed.h"
#include "tests/gpu/trace.h"

#define HOLD "other threads hold cores while calls copy: "
#define GONE "no other threads hold cores any more"

/* C is 16 MiB, so most of a call is the way of C home. */
enum { N = 2048, K = 8, MOST = 256 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *a, *b, *c;

static int make(void **state)
{
    (void)state;
    a = calloc(N * K, sizeof *a);
    b = calloc(N * K, sizeof *b);
    c = calloc(N * N, sizeof *c);
    set_option("OFFLOAD", "always");
    return !a || !b || !c;
}

/* Makes calls until the library says `line`, for so many seconds at most. True if it did, and *said is what
   followed. */
static bool says(const char *line, double most_s, int *said)
{
    const double end_s = seconds() + most_s;
    do {
        trace_begin();
        set_option("VERBOSE", "2");
        cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, N, N, K, 1, a, N, b, K, 0, c, N);
        const char *at = strstr(trace_end(), line);
        if (at && said) *said = atoi(at + strlen(line));
        if (at) return true;
    } while (seconds() < end_s);
    return false;
}

static atomic_bool ended;

static void *spin(void *unused)
{
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) __builtin_ia32_pause();
    return unused;
}

static void alone(void **state)
{
    (void)state;
    assert_false(says(HOLD, 1, NULL));
}

/* Four threads a core, so that they get cores although other processes want some. */
static void beside_spinners(void **state)
{
    (void)state;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int count = cores < MOST / 4 ? 4 * (int)cores : MOST;
    pthread_t threads[MOST];
    int held = 0;
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, spin, NULL), 0);
    const bool noticed = says(HOLD, 100, &held);
    atomic_store(&ended, true);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    assert_true(noticed);
    assert_in_range(held, 1, cores);
    assert_true(says(GONE, 100, NULL));
}

int main(void)
{
    if (!gpu_open() || sysconf(_SC_NPROCESSORS_ONLN) < 2) return 77;
    const struct CMUnitTest tests[] = { cmocka_unit_test(alone), cmocka_unit_test(beside_spinners) };
    return cmocka_run_group_tests_name("spinners", tests, make, NULL);
}
