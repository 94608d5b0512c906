/* SPDX-License-Identifier: MIT */
/* The crew's jobs: each is done once and in order, with and without workers, asleep or awake, for many
   calls at once. Each case runs in a child, because GPUBLAS_THREADS counts until the workers have started;
   the parent has one thread. ctest's timeout finds a hang. */
#include <pthread.h>

#include "tests/unit/crew_load.h"

static void once_each_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    CHECK(gpb_crew_size() == 3);
    push(l, 20000, GPB_CREW_JOBS, false);
    push(l, 20000, 5, false);
    push(l, 20000, GPB_CREW_JOBS, true);
    gpb_crew_end(&l->queue);
    free(l);
}

static void once_each(void **state)
{
    (void)state;
    in_child("4", once_each_run);
}

static void alone_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    CHECK(gpb_crew_size() == 0);
    CHECK(!gpb_crew_help(&l->queue) && !gpb_crew_reap(&l->queue));
    for (int i = 0; i < GPB_CREW_JOBS; i++) CHECK(post(l));
    CHECK(!post(l) && !reap(l));                     /* the queue is full and nobody works */
    CHECK(gpb_crew_help(&l->queue));
    CHECK(!post(l));                                 /* done, but not yet reaped */
    CHECK(reap(l) && !reap(l));
    CHECK(post(l) && !post(l));
    push(l, 10000, GPB_CREW_JOBS, true);
    gpb_crew_end(&l->queue);
    free(l);
}

static void alone(void **state)
{
    (void)state;
    in_child("1", alone_run);
}

static void full_run(void)
{
    static char from[1 << 18], to[1 << 18];
    gpb_crew_queue *queue = calloc(1, sizeof *queue);
    gpb_copy2d_job job = { .from = from, .to = to, .rows = 0, .cols = 1, .element = 16, .uplo = 'G' };
    int64_t posted = 0, reaped = 0, refused = 0;
    CHECK(queue);
    gpb_crew_begin(queue);
    while (posted < 100000) {
        if (gpb_crew_post(queue, &job)) posted++;
        else {
            CHECK(posted - reaped == GPB_CREW_JOBS);
            refused++;
        }
        if (posted - reaped == GPB_CREW_JOBS) reaped += gpb_crew_reap(queue);
    }
    CHECK(refused);
    while (reaped < posted) reaped += gpb_crew_reap(queue);
    gpb_crew_end(queue);
    free(queue);
}

static void full(void **state)
{
    (void)state;
    in_child("3", full_run);
}

/* A call with two queues. Number 0 floods; number 7 has a job now and then. */
static void *produce(void *number)
{
    const int64_t small = *(int *)number;
    load *up = new_load(), *down = new_load();
    for (int round = 0; round < 20; round++) {
        gpb_crew_begin(&up->queue);
        gpb_crew_begin(&down->queue);
        for (int i = 0; i < 10; i++) {
            push(up, 400 >> small, GPB_CREW_JOBS >> small, small % 2);
            push(down, 300 >> small, 1 + (GPB_CREW_JOBS >> small), small % 3);
        }
        gpb_crew_end(&down->queue);
        gpb_crew_end(&up->queue);
    }
    free(up);
    free(down);
    return NULL;
}

static void together(int count, void *(*run)(void *))
{
    pthread_t threads[16];
    int numbers[16];
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void producers_run(void) { together(8, produce); }

static void producers(void **state)
{
    (void)state;
    in_child("6", producers_run);
    in_child("1", producers_run);
}

/* A flood in one queue does not delay the jobs of another. While it lasts, hundreds of others are done;
   that ends it. */
static atomic_bool others_are_through;

static void *flood(void *unused)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    while (!atomic_load(&others_are_through)) {
        while (post(l)) { }
        while (reap(l)) { }
        sched_yield();
    }
    while (l->reaped < l->posted)
        if (!reap(l)) sched_yield();
    gpb_crew_end(&l->queue);
    free(l);
    return unused;
}

static void flooded_run(void)
{
    pthread_t thread;
    load *l = new_load();
    CHECK(pthread_create(&thread, NULL, flood, NULL) == 0);
    gpb_crew_begin(&l->queue);
    push(l, 300, 1, false);
    gpb_crew_end(&l->queue);
    atomic_store(&others_are_through, true);
    pthread_join(thread, NULL);
    free(l);
}

static void flooded(void **state)
{
    (void)state;
    in_child("2", flooded_run);
}

/* Queues come and go, and their memory with them. */
static void *cycle(void *unused)
{
    for (int i = 0; i < 10000; i++) {
        load *l = malloc(sizeof *l);
        CHECK(l);
        memset(&l->queue, 0xa5, sizeof l->queue.jobs[0]);        /* whatever was there before */
        l->posted = l->reaped = 0;
        for (int j = 0; j < 4; j++) {
            memset(l->to[j], 0, sizeof l->to[j]);
            l->from[j] = (float)(j + 1);
        }
        gpb_crew_begin(&l->queue);
        push(l, i % 4, 4, i % 2);
        gpb_crew_end(&l->queue);
        memset(&l->queue, 0x5a, sizeof l->queue);
        free(l);
    }
    return unused;
}

static void cycles_run(void) { together(3, cycle); }

static void cycles(void **state)
{
    (void)state;
    in_child("4", cycles_run);
}

/* A call that fails leaves its queues as they are. What it posted is done, once. */
static void abandoned_run(void)
{
    load *l = new_load();
    for (int round = 0; round < 1000; round++) {
        const int jobs = round % 97;
        gpb_crew_begin(&l->queue);
        for (l->posted = 0; l->posted < jobs;) CHECK(post(l));
        for (l->reaped = 0; l->reaped < jobs / 3;)
            if (!reap(l)) sched_yield();
        gpb_crew_end(&l->queue);
        for (int64_t j = l->reaped; j < jobs; j++)
            for (int i = 0; i < 64; i++) CHECK(l->to[j][i] == (i <= j % 64 ? l->from[i] : 0));
        memset(l->to, 0, sizeof l->to);
    }
    free(l);
}

static void abandoned(void **state)
{
    (void)state;
    in_child("4", abandoned_run);
}

/* More queues than the crew has places. The last ones are served by their own callers. */
static void many_queues_run(void)
{
    enum { LOADS = 70 };
    load *l[LOADS];
    for (int i = 0; i < LOADS; i++) {
        l[i] = new_load();
        gpb_crew_begin(&l[i]->queue);
    }
    for (int i = 0; i < LOADS; i++)
        for (int j = 0; j < 100; j++) CHECK(post(l[i]));
    for (int i = LOADS; i-- > 0;) push(l[i], 100, 7, false);
    for (int i = 0; i < LOADS; i++) {
        gpb_crew_end(&l[i]->queue);
        free(l[i]);
    }
}

static void many_queues(void **state)
{
    (void)state;
    in_child("3", many_queues_run);
}

/* A post wakes sleeping workers, and they wake each other. */
static void asleep_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    for (int round = 0; round < 100; round++) {
        /* Workers look for work for 50 us, so this finds them awake, asleep and falling asleep. */
        usleep(round % 10 * 400);
        push(l, 1 + round % 32, GPB_CREW_JOBS, false);
    }
    gpb_crew_end(&l->queue);
    usleep(20000);                           /* and without any queue for a while */
    gpb_crew_begin(&l->queue);
    push(l, 500, GPB_CREW_JOBS, false);
    gpb_crew_end(&l->queue);
    free(l);
}

static void asleep(void **state)
{
    (void)state;
    in_child("9", asleep_run);
    in_child("2", asleep_run);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(once_each), cmocka_unit_test(alone),
                                        cmocka_unit_test(full), cmocka_unit_test(producers),
                                        cmocka_unit_test(flooded), cmocka_unit_test(cycles),
                                        cmocka_unit_test(many_queues), cmocka_unit_test(asleep),
                                        cmocka_unit_test(abandoned) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
