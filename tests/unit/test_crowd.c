/* SPDX-License-Identifier: MIT */
/* The crowd, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/clock.h"

static int64_t now;
static int64_t its_clock(void) { return now; }
#define gpb_clock_ns its_clock
#include "src/crowd.c"

enum { MS = 1000000 };

/* Calls that each miss 1 ms, until an attempt begins; how many. */
static int misses(double lost)
{
    int calls = 0;
    do calls++;
    while (!gpb_crowd_missed(1e-3, lost));
    assert_true(gpb_crowd_ending());
    return calls;
}

static void comes_and_goes(void **state)
{
    (void)state;
    now = 1000 * MS;
    assert_false(gpb_crowded() || gpb_crowd_ending());
    gpb_crowd_begin();
    assert_true(gpb_crowded());
    now += 149 * MS;
    assert_true(gpb_crowded());
    now += MS;
    assert_false(gpb_crowded());
}

/* An attempt begins when it has been paid for; each that the host's threads cut short doubles the price, one that they do not restores it. */
static void attempts(void **state)
{
    (void)state;
    now = 2000 * MS;
    gpb_crowd_begin();
    int price = misses(0.5);
    assert_in_range(price, 75, 77);
    for (int failure = 1; failure <= 14; failure++) {
        now += 10 * MS;
        gpb_crowd_begin();
        assert_true(gpb_crowded() && !gpb_crowd_ending());
        price = misses(0.5);
        const int doubled = 75 << (failure < MOST_FAILURES ? failure : MOST_FAILURES);
        assert_in_range(price, doubled, doubled + 2);
    }
    now += 151 * MS;
    assert_false(gpb_crowded() || gpb_crowd_ending());
    gpb_crowd_begin();
    assert_in_range(misses(0.5), 75, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(comes_and_goes), cmocka_unit_test(attempts) };
    return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
