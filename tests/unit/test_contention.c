/* SPDX-License-Identifier: MIT */
/* Contention, with a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/service/clock.h"

static int64_t now;
static int64_t its_clock(void) { return now; }
#define gpb_clock_ns its_clock
#include "src/copy/contention.c"

enum { MS = 1000000 };

/* Makes calls that each lose 1 ms, until an attempt begins. Returns how many. */
static int misses(double lost)
{
    int calls = 0;
    do calls++;
    while (!gpb_contention_missed(1e-3, lost));
    assert_true(gpb_contention_is_draining());
    return calls;
}

static void comes_and_goes(void **state)
{
    (void)state;
    now = 1000 * MS;
    assert_false(gpb_contention_is_high() || gpb_contention_is_draining());
    gpb_contention_begin(16, 16);
    assert_true(gpb_contention_is_high());
    now += 149 * MS;
    assert_true(gpb_contention_is_high());
    now += MS;
    assert_false(gpb_contention_is_high());
}

/* One call on the host, with no other beside it. */
static bool contends(int threads, int cores)
{
    now += 1000 * MS;
    assert_true(!gpb_contention_is_high() && gpb_contention_workers() == GPB_CONTENTION_ALL_WORKERS);
    gpb_contention_begin(threads, cores);
    assert_true(gpb_contention_is_high() || gpb_contention_workers() == cores - threads);
    assert_true(!gpb_contention_is_high() || gpb_contention_workers() == GPB_CONTENTION_ALL_WORKERS);
    return gpb_contention_is_high();
}

static void when_contended(void **state)
{
    (void)state;
    assert_false(contends(4, 16) || contends(10, 16) || contends(2, 8) || contends(1, 7)
                 || contends(64, 192));
    assert_true(contends(16, 16) && contends(11, 16) && contends(4, 4) && contends(4, 8) && contends(1, 1)
                && contends(3, 2));
    assert_true(contends(0, 16) && contends(0, 1) && contends(-1, 16) && contends(32, 16));
}

/* The limit on workers that may be awake lasts as long as the threads on the other cores spin. So does
   their largest number. */
static void leave_some(void **state)
{
    (void)state;
    now += 1000 * MS;
    gpb_contention_begin(4, 16);
    assert_true(!gpb_contention_is_high() && gpb_contention_workers() == 12);
    now += 149 * MS;
    assert_int_equal(gpb_contention_workers(), 12);
    gpb_contention_begin(8, 16);
    gpb_contention_begin(4, 16);
    now += 149 * MS;
    assert_int_equal(gpb_contention_workers(), 8);
    now += MS;
    assert_true(!gpb_contention_is_high() && gpb_contention_workers() == GPB_CONTENTION_ALL_WORKERS);
    gpb_contention_begin(4, 16);
    assert_int_equal(gpb_contention_workers(), 12);
}

/* A few threads neither prolong the contention of many, nor end an attempt early. */
static void few_after_many(void **state)
{
    (void)state;
    now += 1000 * MS;
    gpb_contention_begin(16, 16);
    misses(0.5);
    now += 100 * MS;
    gpb_contention_begin(4, 16);
    assert_true(gpb_contention_is_high() && gpb_contention_is_draining() && atomic_load(&failures) == 0);
    now += 50 * MS;
    assert_true(!gpb_contention_is_high() && gpb_contention_workers() == 12);
    now += 50 * MS;
    gpb_contention_begin(16, 16);
    assert_true(gpb_contention_is_high() && !gpb_contention_is_draining() && atomic_load(&failures) == 0);
}

/* An attempt begins once the time lost has paid for it. Each one that the host's threads cut short doubles
   the price; one that they leave alone restores it. */
static void attempts(void **state)
{
    (void)state;
    now = 2000 * MS;
    gpb_contention_begin(16, 16);
    int price = misses(0.5);
    assert_in_range(price, 75, 77);
    for (int failure = 1; failure <= 14; failure++) {
        now += 10 * MS;
        gpb_contention_begin(16, 16);
        assert_true(gpb_contention_is_high() && !gpb_contention_is_draining());
        price = misses(0.5);
        const int doubled = 75 << (failure < MAX_FAILURES ? failure : MAX_FAILURES);
        assert_in_range(price, doubled, doubled + 2);
    }
    now += 151 * MS;
    assert_false(gpb_contention_is_high() || gpb_contention_is_draining());
    gpb_contention_begin(16, 16);
    assert_in_range(misses(0.5), 75, 77);
}

/* Calls on the host leave cores as long as that gains more than it costs. What no longer happens is soon
   forgotten. */
static void leave_cores(void **state)
{
    (void)state;
    assert_true(gpb_contention_few(16) == 6 && gpb_contention_few(64) == 54 && gpb_contention_few(8) == 2
                && gpb_contention_few(4) == 1 && gpb_contention_few(2) == 1 && gpb_contention_few(1) == 1);
    assert_false(gpb_contention_spares());
    gpb_contention_copied(10e-3);                  /* it loses 20 ms beside the host's threads */
    assert_true(gpb_contention_spares());
    gpb_contention_host_took(11e-3, 16, 16, 16);   /* with 6 threads 18 ms longer */
    assert_true(gpb_contention_spares());
    gpb_contention_host_took(5e-3, 6, 16, 16);     /* with all 16 it would have taken 3 ms less */
    assert_false(gpb_contention_spares());
    gpb_contention_gains(3e-3);
    assert_true(gpb_contention_spares());
    gpb_contention_host_took(10, 4, 4, 16);        /* a host of four threads always leaves enough */
    assert_true(gpb_contention_spares());
    static const char threads[2];
    gpb_contention_called_by(&threads[0]);
    gpb_contention_called_by(&threads[0]);
    assert_true(gpb_contention_spares());
    gpb_contention_called_by(&threads[1]);         /* not while several threads call */
    gpb_contention_called_by(&threads[1]);
    assert_false(gpb_contention_spares());
    now += 999 * MS;
    assert_false(gpb_contention_spares());
    now += MS;
    assert_true(gpb_contention_spares());
    for (int i = 0; i < 1000; i++) gpb_contention_copied(1e-3);
    int calls = 0;
    for (; gpb_contention_spares() && calls < 1000; calls++) gpb_contention_host_took(1e-3, 6, 16, 16);
    assert_in_range(calls, 80, 160);
    for (calls = 0; !gpb_contention_spares() && calls < 1000; calls++) gpb_contention_copied(1e-3);
    assert_in_range(calls, 1, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(comes_and_goes), cmocka_unit_test(when_contended),
                                        cmocka_unit_test(leave_some), cmocka_unit_test(few_after_many),
                                        cmocka_unit_test(attempts),
                                        cmocka_unit_test(leave_cores) };
    return cmocka_run_group_tests_name("contention", tests, NULL, NULL);
}
