/* SPDX-License-Identifier: MIT */
/* The crowd, with clocks of the test's own: calls on 16 cores beside which other threads run, workers that
   get a share of their cores, and what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "src/service/clock.h"

static int64_t now, process_ns, *thread_ns;      /* thread_ns: CPU time of the thread whose turn it is */
static int readings;                             /* of CPU clocks */
static int64_t its_clock(void) { return now; }
static int its_clock_gettime(clockid_t clock, struct timespec *time)
{
    const int64_t ns = clock == CLOCK_PROCESS_CPUTIME_ID ? process_ns : *thread_ns;
    assert_true(clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID);
    readings++;
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    return 0;
}
#define gpb_clock_ns its_clock
#define clock_gettime its_clock_gettime
#define load contention_load
#include "src/copy/contention.c"
#undef load
#include "src/copy/crowd.c"

static int cores = 16;
int gpb_cores(void) { return cores; }
static int lines;
void gpb_log_debug(const char *format, ...)
{
    assert_non_null(format);
    lines++;
}

/* ---- the world */

enum { US = 1000, MS = 1000000, S = 1000000000, WORKERS = 13 };
static int64_t caller_cpu, worker_cpu[WORKERS];
static gpb_crowd_worker worker[WORKERS];

/* What goes on during calls, and how many workers take part. */
typedef struct world {
    double others;               /* cores that other threads of the process get */
    double share;                /* of the time that workers are awake, they run this share */
    int workers;
} world;
static const world quiet = { 0, 1, 13 }, crowded = { 8, 0.5, 13 };

static void passes(int64_t ns, const world *w)
{
    now += ns;
    caller_cpu += ns;
    process_ns += ns + (int64_t)(w->others * (double)ns);
    for (int i = 0; i < w->workers; i++) {
        worker_cpu[i] += (int64_t)(w->share * (double)ns);
        process_ns += (int64_t)(w->share * (double)ns);
    }
}

static void each_worker(const world *w, bool sleeps)
{
    for (int i = 0; i < w->workers; i++) {
        thread_ns = &worker_cpu[i];
        if (sleeps) gpb_crowd_worker_sleeps(&worker[i]);
        else gpb_crowd_worker_looks(&worker[i], now);
    }
    thread_ns = &caller_cpu;
}

/* A call, which workers are woken for. They find no work twice, and then sleep. */
static void call(int64_t ns, const world *w)
{
    thread_ns = &caller_cpu;
    gpb_crowd_call_begins();
    each_worker(w, false);
    passes(ns / 2, w);
    each_worker(w, false);
    passes(ns - ns / 2, w);
    gpb_crowd_call_ends();
    each_worker(w, true);
}

/* Calls of 1 ms, with a pause behind each, until a crowd is known. Returns how many, or `most`. */
static int calls_until_found(int most, int64_t pause_ns, const world *w)
{
    for (int calls = 0; calls < most; calls++) {
        if (gpb_contention_is_crowd()) return calls;
        call(MS, w);
        now += pause_ns;
    }
    return most;
}

static void begin(void)
{
    const world none = { 0, 1, WORKERS };
    now += 100 * (int64_t)S;
    cores = 16;
    thread_ns = &caller_cpu;
    gpb_crowd_in_child();
    gpb_contention_crowd(0, cores);
    each_worker(&none, true);
    atomic_store(&failures, 0);
    atomic_store(&draining_until, 0);
    atomic_store(&missed_ns, 0);
}

/* ---- */

/* A verdict takes 30 ms of calls. The crowd holds 8 cores, so 8 are left for workers. When it has got the
   cores that the other workers left, it is found to be larger, and workers sleep at once. */
static void is_found(void **state)
{
    (void)state;
    begin();
    lines = 0;
    const int calls = calls_until_found(1000, 0, &crowded);
    assert_in_range(calls, 30, 31);
    assert_true(!gpb_contention_is_high() && gpb_contention_workers() == 8 && lines == 1);
    const world more = { 11, 1, 5 };
    for (int i = 0; i < 32; i++) call(MS, &more);
    assert_true(gpb_contention_is_high() && gpb_contention_workers() == GPB_CONTENTION_ALL_WORKERS);
    for (int i = 0; i < 200; i++) call(MS, &more);
    assert_true(gpb_contention_is_high() && lines == 1);
    for (int i = 0; i < 64; i++) call(MS, &quiet);
    assert_true(!gpb_contention_is_crowd() && !gpb_contention_is_high() && lines == 2);
    assert_int_equal(gpb_contention_workers(), GPB_CONTENTION_ALL_WORKERS);
}

/* On few cores any other thread crowds the crew; on many, only many do. */
static void how_many(void **state)
{
    (void)state;
    const struct { int cores; world w; bool high; int workers; } cases[] = {
        { 2, { 0.7, 0.6, 1 }, true, GPB_CONTENTION_ALL_WORKERS },
        { 4, { 1.3, 0.6, 3 }, true, GPB_CONTENTION_ALL_WORKERS },
        { 8, { 2, 0.8, 7 }, false, 6 }, { 8, { 3, 0.7, 7 }, true, GPB_CONTENTION_ALL_WORKERS },
        { 16, { 4, 0.8, 13 }, false, 12 }, { 16, { 10, 0.4, 13 }, false, 6 },
        { 16, { 11, 0.3, 13 }, true, GPB_CONTENTION_ALL_WORKERS } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        cores = cases[i].cores;
        assert_in_range(calls_until_found(100, 0, &cases[i].w), 30, 31);
        assert_int_equal(gpb_contention_is_high(), cases[i].high);
        assert_int_equal(gpb_contention_workers(), cases[i].workers);
    }
}

/* Not a crowd: nobody; workers that the kernel has put beside each other, or that wait for the disk, though
   nobody else runs; threads that run beside workers which get their cores; what the program computes between
   calls. */
static void none(void **state)
{
    (void)state;
    const world cases[] = { quiet, { 0, 0.01, 13 }, { 0.16, 0.5, 13 }, { 0.45, 0.5, 1 }, { 3, 1, 13 },
                            { 3, 0.95, 13 }, { 0, 1, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        assert_int_equal(calls_until_found(1000, 0, &cases[i]), 1000);
        assert_false(gpb_crowd_is_suspected());
    }
    begin();
    for (int i = 0; i < 1000; i++)           /* workers that sleep mostly, and run when they do not */
        call(MS, &(world){ 3, 1, i % 10 ? 0 : 13 });
    assert_true(!gpb_contention_is_crowd());
    begin();
    for (int i = 0; i < 1000; i++) {
        const world computes = { 15, 0, 0 };
        call(MS, &(world){ 0, 0.6, 13 });
        passes(3 * MS, &computes);
    }
    assert_true(!gpb_contention_is_crowd());
}

/* Workers do not get to a core at all. */
static void never_come(void **state)
{
    (void)state;
    begin();
    assert_in_range(calls_until_found(100, 0, &(world){ 15, 1, 0 }), 30, 31);
    assert_true(gpb_contention_is_high());
}

/* How much of the CPU time the kernel has added up: no tick in most calls of 0.1 ms, and 4 ms of each of 15
   threads in the fortieth. */
static void ticks(void **state)
{
    (void)state;
    begin();
    int i = 0;
    for (; i < 1000 && !gpb_contention_is_crowd(); i++) {
        call(MS / 10, &(world){ i % 40 == 39 ? 15 * 40 : 0, 0.5, 13 });
        now += 10 * US;
    }
    assert_in_range(i, 300, 302);
    assert_true(gpb_contention_is_high());
}

/* Calls pay for it now and then, and not at all for 300 ms after nobody was found. */
static void is_cheap(void **state)
{
    (void)state;
    begin();
    readings = 0;
    for (int i = 0; i < 33000; i++) call(MS / 10, &(world){ 0, 1, 0 });
    assert_in_range(readings, 4 * 2900, 4 * 3100);
    begin();
    calls_until_found(31, 0, &quiet);
    readings = 0;
    calls_until_found(290, 0, &quiet);
    assert_int_equal(readings, 0);
    /* calls that have pauses between them; the last are too far apart for a verdict */
    for (int64_t pause = MS; pause < 1000 * MS; pause *= 3) {
        begin();
        readings = 0;
        calls_until_found(4000, pause, &(world){ 0, 1, 0 });
        assert_in_range(readings, 4 * 300, 4 * 1600);
    }
}

/* Calls that overlap are not measured. Nor are calls while the host's threads may be the crowd. */
static void disturbed(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 1000; i++) {
        gpb_crowd_call_begins();
        passes(MS, &crowded);
        gpb_crowd_disturb();
        gpb_crowd_call_ends();
    }
    assert_false(gpb_contention_is_crowd() || load(&calls_ns));
    for (int i = 0; i < 1000; i++) {
        gpb_contention_begin(16, 16);
        call(MS, &crowded);
    }
    assert_false(gpb_contention_is_crowd() || load(&calls_ns));
    assert_in_range(calls_until_found(1000, 0, &crowded), 328, 332);
}

/* Calls that are too far apart tell nothing. A crowd that no call confirms is forgotten. */
static void of_old(void **state)
{
    (void)state;
    begin();
    assert_int_equal(calls_until_found(500, 40 * (int64_t)MS, &crowded), 500);
    begin();
    for (int i = 0; i < 30; i++) call(MS, &crowded);
    now += 2 * (int64_t)S;
    call(MS, &crowded);
    assert_false(gpb_contention_is_crowd());
    begin();
    assert_in_range(calls_until_found(100, 10 * MS, &crowded), 30, 31);
    now += 985 * MS;
    assert_true(gpb_contention_is_crowd());
    now += 10 * MS;
    assert_true(!gpb_contention_is_crowd() && gpb_contention_workers() == GPB_CONTENTION_ALL_WORKERS);
}

/* What calls take before the verdict is not that of calls without a crowd. Once it is known, all is clear. */
static void suspicion(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 30; i++) {
        call(MS, &crowded);
        if (i > 0) assert_true(gpb_crowd_is_suspected());
    }
    call(MS, &crowded);
    assert_true(gpb_contention_is_crowd() && !gpb_crowd_is_suspected());
    begin();
    for (int i = 0; i < 10; i++) call(MS, &crowded);
    assert_true(gpb_crowd_is_suspected());
    gpb_crowd_in_child();
    assert_true(!gpb_crowd_is_suspected() && !load(&calls_ns));
}

/* Letting the host's threads go idle is in vain beside a crowd that stays, and is not tried while one is
   known. */
static void attempts(void **state)
{
    (void)state;
    begin();
    gpb_contention_begin(16, 16);
    while (!gpb_contention_missed(1e-3, 0.5)) { }
    const world many = { 15, 0.1, 13 };
    assert_in_range(calls_until_found(1000, 0, &many), 328, 332);
    assert_true(gpb_contention_is_high() && atomic_load(&failures) == 1);
    for (int i = 0; i < 10000; i++) assert_false(gpb_contention_missed(1e-3, 0.5));
    gpb_contention_begin(16, 16);
    assert_int_equal(atomic_load(&failures), 1);
    now += 2 * (int64_t)S;
    int calls = 1;
    while (!gpb_contention_missed(1e-3, 0.5)) calls++;
    assert_in_range(calls, 150, 152);
    now += 600 * MS;                         /* It succeeds, and a crowd comes later. */
    assert_in_range(calls_until_found(100, 0, &many), 30, 36);
    gpb_contention_begin(16, 16);
    assert_int_equal(atomic_load(&failures), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(is_found), cmocka_unit_test(how_many),
                                        cmocka_unit_test(none), cmocka_unit_test(never_come),
                                        cmocka_unit_test(ticks), cmocka_unit_test(is_cheap),
                                        cmocka_unit_test(disturbed), cmocka_unit_test(of_old),
                                        cmocka_unit_test(suspicion), cmocka_unit_test(attempts) };
    return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
