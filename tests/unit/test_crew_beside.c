/* SPDX-License-Identifier: MIT */
/* The crew beside threads of the host BLAS that leave it some cores. No more workers are awake than may
   be, and no job is lost for that. The test decides how many may be awake. ctest's timeout finds a hang. */
#include <pthread.h>

#include "tests/unit/crew_load.h"

#include "src/service/clock.h"

static atomic_bool time_stands;      /* workers without work never stop looking for it */
static int64_t its_clock(void) { return atomic_load(&time_stands) ? 0 : gpb_clock_ns(); }
#define gpb_clock_ns its_clock
#include "src/copy/crew.c"

static atomic_int allowed = GPB_CONTENTION_ALL_WORKERS;
bool gpb_contention_is_high(void) { return false; }
int gpb_contention_workers(void) { return atomic_load(&allowed); }

/* What the crew tells of calls and of its workers. */
static atomic_int begun, ended_calls, disturbed;
static atomic_int looks, sleeps;
void gpb_crowd_call_begins(void) { begun++; }
void gpb_crowd_call_ends(void) { ended_calls++; }
void gpb_crowd_disturb(void) { disturbed++; }
void gpb_crowd_worker_looks(gpb_crowd_worker *worker, int64_t now)
{
    CHECK(now <= gpb_clock_ns());
    worker->counts = true;
    atomic_fetch_add(&looks, 1);
}
void gpb_crowd_worker_sleeps(gpb_crowd_worker *worker)
{
    CHECK(worker->counts);
    atomic_fetch_add(&sleeps, 1);
}
void gpb_crowd_in_child(void) { }

static int awake(void) { return atomic_load(&size) - (int)(atomic_load(&watch) / ASLEEP); }

/* From here on so many may be awake. Returns once the others sleep. */
static void allow(int count)
{
    atomic_store(&allowed, count);
    while (awake() > count) sched_yield();
}

/* ---- without threads: which workers are woken */

static void set_watch(int looking, int asleep)
{
    atomic_store(&watch, (unsigned)(looking * LOOKING + asleep * ASLEEP));
    atomic_store(&tickets, 0);
}

static void counts_run(void)
{
    atomic_store(&size, 13);
    atomic_store(&allowed, 12);                      /* 4 threads on 16 cores */
    set_watch(0, 13);
    rouse(1, 1);
    CHECK(awake() == 1 && atomic_load(&tickets) == 1);
    rouse(1, 1);                                     /* one is looking already */
    CHECK(awake() == 1);
    rouse(100, FANOUT);
    CHECK(awake() == 3);
    rouse(100, 100);
    CHECK(awake() == 12 && atomic_load(&tickets) == 12);
    rouse(100, 100);
    CHECK(awake() == 12 && atomic_load(&tickets) == 12);
    atomic_store(&allowed, GPB_CONTENTION_ALL_WORKERS);           /* the host's threads sleep now */
    rouse(100, 100);
    CHECK(awake() == 13 && atomic_load(&tickets) == 13);

    atomic_store(&allowed, 6);
    set_watch(0, 5);                                 /* eight are working */
    rouse(1, 1);
    CHECK(awake() == 8 && !stay_up() && awake() == 8);
    set_watch(0, 7);
    CHECK(!stay_up());                               /* Another six are awake and will look. */
    set_watch(0, 8);
    CHECK(stay_up() && awake() == 6 && !stay_up());
    set_watch(0, 13);
    atomic_store(&allowed, 1);
    CHECK(stay_up() && awake() == 1 && !stay_up());

    atomic_store(&size, 0);                          /* the workers are being created */
    set_watch(2, 3);
    rouse(100, 100);
    CHECK(atomic_load(&tickets) == 3);
}

static void counts(void **state)
{
    (void)state;
    in_child("14", counts_run);
}

/* A call has two queues. It is one while it is alone, and disturbed by the queues of others. */
static void calls_run(void)
{
    static gpb_crew_queue up, down, other[2];
    for (int round = 1; round <= 3; round++) {
        gpb_crew_begin(&up);
        gpb_crew_begin(&down);
        CHECK(begun == round && ended_calls == round - 1);
        gpb_crew_end(&down);
        CHECK(ended_calls == round - 1);
        gpb_crew_end(&up);
        CHECK(ended_calls == round && disturbed == 0);
    }
    gpb_crew_begin(&up);
    gpb_crew_begin(&down);
    gpb_crew_begin(&other[0]);
    gpb_crew_begin(&other[1]);
    CHECK(begun == 4 && disturbed == 2);
    gpb_crew_end(&up);
    gpb_crew_end(&down);
    gpb_crew_begin(&up);
    CHECK(begun == 4 && ended_calls == 3 && disturbed == 3);
    gpb_crew_end(&other[0]);
    gpb_crew_end(&other[1]);
    gpb_crew_end(&up);
    CHECK(ended_calls == 4);
}

static void calls(void **state)
{
    (void)state;
    in_child("1", calls_run);
}

/* ---- with threads */

static atomic_bool ended;

/* Every other time producers wait for workers and do no jobs themselves. */
static void *produce(void *number)
{
    const int mine = *(int *)number;
    load *l = new_load();
    for (int round = 0; round < 60; round++) {
        gpb_crew_begin(&l->queue);
        for (int i = 0; i < 4; i++)
            push(l, 100 + 50 * mine, 1 + (GPB_CREW_JOBS >> mine * 2), (round + mine) % 2);
        gpb_crew_end(&l->queue);
        if (mine == 0 && round % 8 == 0) usleep(1000);       /* some workers fall asleep */
    }
    free(l);
    return NULL;
}

static void produce_together(void)
{
    enum { PRODUCERS = 4 };
    pthread_t threads[PRODUCERS];
    int numbers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, produce, &numbers[i]) == 0);
    }
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
}

static void start_workers(void)
{
    static gpb_crew_queue queue;
    gpb_crew_begin(&queue);
    gpb_crew_end(&queue);
    CHECK(gpb_crew_size() == 8);
}

/* Once the allowed number is awake, there are never more. */
static void *keep_count(void *unused)
{
    while (!atomic_load(&ended)) {
        CHECK(awake() <= atomic_load(&allowed));
        sched_yield();
    }
    return unused;
}

static void never_more_run(void)
{
    start_workers();
    for (int count = 1; count <= 5; count += 2) {
        pthread_t thread;
        atomic_store(&ended, false);
        allow(count);
        CHECK(pthread_create(&thread, NULL, keep_count, NULL) == 0);
        produce_together();
        atomic_store(&ended, true);
        pthread_join(thread, NULL);
        atomic_store(&allowed, GPB_CONTENTION_ALL_WORKERS);
        produce_together();
    }
}

static void never_more(void **state)
{
    (void)state;
    in_child("9", never_more_run);
}

/* A worker above the allowed number goes to sleep for that reason alone. */
static void too_many_run(void)
{
    load *l = new_load();
    atomic_store(&time_stands, true);
    start_workers();
    CHECK(awake() == 8);
    gpb_crew_begin(&l->queue);
    for (int count = 7; count > 0; count--) {
        allow(count);
        push(l, 1000, GPB_CREW_JOBS, false);
        CHECK(awake() <= count);
    }
    gpb_crew_end(&l->queue);
    free(l);
}

/* A worker tells whenever it finds no job, and when it falls asleep. */
static void told_run(void)
{
    load *l = new_load();
    start_workers();
    allow(1);
    CHECK(atomic_load(&sleeps) >= 7);
    while (atomic_load(&looks) < 8) sched_yield();
    gpb_crew_begin(&l->queue);
    for (int before = atomic_load(&looks); atomic_load(&looks) < before + 10;) push(l, 1, 1, false);
    gpb_crew_end(&l->queue);
    free(l);
}

static void told(void **state)
{
    (void)state;
    in_child("9", told_run);
}

static void too_many(void **state)
{
    (void)state;
    in_child("9", too_many_run);
}

/* When the host's threads are gone, a call's jobs wake all workers again, in time. */
static void it_ends_run(void)
{
    load *l = new_load();
    start_workers();
    allow(1);
    atomic_store(&allowed, GPB_CONTENTION_ALL_WORKERS);
    gpb_crew_begin(&l->queue);
    for (bool more = false; !more;) {
        for (int i = 0; i < GPB_CREW_JOBS; i++) {
            CHECK(post(l));
            more |= awake() > 4;
        }
        while (l->reaped < l->posted)
            if (!reap(l)) {
                more |= awake() > 4;
                sched_yield();
            }
    }
    gpb_crew_end(&l->queue);
    free(l);
}

static void it_ends(void **state)
{
    (void)state;
    in_child("9", it_ends_run);
}

/* The host's threads come and go, few and many. */
static void *vary(void *unused)
{
    for (unsigned i = 0; !atomic_load(&ended); i = i * 1103515245 + 12345) {
        atomic_store(&allowed, i >> 16 & 1 ? GPB_CONTENTION_ALL_WORKERS : 1 + (int)(i >> 17 & 7));
        usleep(i >> 20 & 255);
    }
    return unused;
}

static void varied_run(void)
{
    pthread_t thread;
    start_workers();
    CHECK(pthread_create(&thread, NULL, vary, NULL) == 0);
    for (int i = 0; i < 5; i++) produce_together();
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
}

static void varied(void **state)
{
    (void)state;
    in_child("9", varied_run);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts), cmocka_unit_test(calls),
                                        cmocka_unit_test(told), cmocka_unit_test(never_more),
                                        cmocka_unit_test(too_many), cmocka_unit_test(it_ends),
                                        cmocka_unit_test(varied) };
    return cmocka_run_group_tests_name("crew beside the host's threads", tests, NULL, NULL);
}
