/* SPDX-License-Identifier: MIT */
/* For the tests of the crew: cases that run in children, and jobs that show whether each was done exactly
   once and in time. */
#ifndef GPB_TESTS_CREW_LOAD_H
#define GPB_TESTS_CREW_LOAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/copy/crew.h"
#include "src/service/option.h"

enum { SKIPPED = 77 };

/* In a child: prints the line that failed and ends the child. */
#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), _exit(1)))

static inline void in_child(const char *threads, void (*run)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        CHECK(gpb_option_set("THREADS", threads) == 0);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
    assert_int_equal(status, 0);
}

/* A queue, and the counters that its jobs add numbers to. So a job that is done twice, or not before it is
   reaped, shows. */
typedef struct load {
    gpb_crew_queue queue;
    int64_t posted, reaped;
    float from[64], to[GPB_CREW_JOBS][64];
} load;

static inline load *new_load(void)
{
    load *l = calloc(1, sizeof *l);
    CHECK(l);
    for (int i = 0; i < 64; i++) l->from[i] = (float)(i + 1);
    return l;
}

static inline bool post(load *l)
{
    const int slot = (int)(l->posted % GPB_CREW_JOBS), size = 1 + (int)(l->posted % 64);
    gpb_copy2d_job job = { .from = (char *)l->from, .to = (char *)l->to[slot], .rows = size, .cols = 1,
                           .ld_from = size, .ld_to = size, .element = 4, .uplo = 'G', .adds = true,
                           .beta = 1 };
    if (!gpb_crew_post(&l->queue, &job)) return false;
    l->posted++;
    return true;
}

static inline bool reap(load *l)
{
    if (!gpb_crew_reap(&l->queue)) return false;
    const int slot = (int)(l->reaped % GPB_CREW_JOBS), size = 1 + (int)(l->reaped % 64);
    l->reaped++;
    CHECK(l->reaped <= l->posted);
    for (int i = 0; i < 64; i++) CHECK(l->to[slot][i] == (i < size ? (float)(i + 1) : 0));
    memset(l->to[slot], 0, sizeof l->to[slot]);
    return true;
}

/* Puts this many jobs through the queue, at most `ahead` of them at a time. */
static inline void push(load *l, int64_t jobs, int64_t ahead, bool helps)
{
    for (const int64_t last = l->posted + jobs; l->reaped < last;) {
        bool moved = false;
        while (l->posted < last && l->posted - l->reaped < ahead && post(l)) moved = true;
        while (reap(l)) moved = true;
        if (!moved && !((helps || gpb_crew_size() == 0) && gpb_crew_help(&l->queue))) sched_yield();
    }
    CHECK(!gpb_crew_reap(&l->queue) && !gpb_crew_help(&l->queue));
}

#endif
