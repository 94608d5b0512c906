/* SPDX-License-Identifier: MIT */
/* Sixteen threads at once, of all types, each with operands of its own and with an A and a B that all of them
   read; large and small calls side by side; then a fork, whose child computes on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/placed.h"

enum { THREADS = 16 };

static placed shared;                    /* A and B that all threads read at once */

static int rounds(void) { return getenv("GPB_TEST_LARGE") ? 60 : 12; }

/* NULL if every answer was right. */
static void *caller(void *number)
{
    int t = *(int *)number;
    gpu_make_current(true);
    placed p = { .of = { .type = (enum gpb_type)((t + t / 4) % GPB_TYPES),
                         .m = 40 + 17 * t,
                         .n = 150 - 5 * t,
                         .k = 30 + 11 * t,
                         .transa = "NT"[t & 1],
                         .transb = "NT"[t >> 1 & 1],
                         .row_major = t >> 2 & 1,
                         .pad = t % 3,
                         .offset = t % 4 },
                 .at = { t % PLACE_MANAGED, t / 3 % PLACE_MANAGED, t / 5 % PLACE_MANAGED } };
    placed q = shared;
    placed_make(&p);
    q.x[GPB_C] = operand_make(PLACE_PAGEABLE, GPB_TYPE_s, shared.x[GPB_C].count, shared.x[GPB_C].offset);
    bool right = true;
    for (int i = 0; i < rounds() && right; i++)
        right = placed_try(&p, 1, i & 1 ? 0.5f : 0, GPB_MATH_FMA) && placed_try(&q, 1, 0, GPB_MATH_FMA);
    operand_free(&q.x[GPB_C]);
    placed_free(&p);
    return right ? NULL : number;
}

/* Runs so many threads, each with its number; all are to be right. */
static void run_threads(int count, void *(*what)(void *))
{
    pthread_t threads[THREADS];
    int number[THREADS];
    for (int t = 0; t < count; t++) {
        number[t] = t;
        assert_int_equal(pthread_create(&threads[t], NULL, what, &number[t]), 0);
    }
    int wrong = 0;
    for (int t = 0; t < count; t++) {
        void *result;
        assert_int_equal(pthread_join(threads[t], &result), 0);
        wrong += result != NULL;
    }
    assert_int_equal(wrong, 0);
}

static void test_threads(void **state)
{
    (void)state;
    shared = (placed){ .of = { .m = 130, .n = 70, .k = 90, .transa = 'N', .transb = 'T', .pad = 1 } };
    placed_make(&shared);
    int64_t before = gpu_calls();
    run_threads(THREADS, caller);
    assert_int_equal(gpu_calls(), before + 2 * THREADS * rounds());
    placed_free(&shared);
}

/* Every other thread's call is large (gpu/lanes.h): these take turns. */
static void *large_or_small(void *number)
{
    const int t = *(int *)number;
    const bool large = t % 2;
    gpu_make_current(true);
    placed p = { .of = { .type = (enum gpb_type)(t / 2), .m = large ? 2100 : 130, .n = large ? 2100 : 70,
                         .k = 8, .transa = 'N', .transb = 'N' } };
    placed_make(&p);
    bool right = true;
    for (int i = 0; i < (large ? 2 : 4 * rounds()) && right; i++) right = placed_try(&p, 1, 0, GPB_MATH_FMA);
    placed_free(&p);
    return right ? NULL : number;
}

static void test_turns(void **state)
{
    (void)state;
    int64_t before = gpu_calls();
    run_threads(8, large_or_small);
    assert_int_equal(gpu_calls(), before + 4 * 2 + 4 * 4 * rounds());
}

/* So small that neither OpenBLAS nor the check of the answer (cores.c) uses threads, because ThreadSanitizer
   ends a forked child that starts one. */
static void fork_with(enum gpb_type type)
{
    placed p = { .of = { .type = type, .m = 40, .n = 30, .k = 20, .transa = 'T', .transb = 'N', .pad = 2 } };
    placed_make(&p);
    int64_t before = gpu_calls();
    assert_true(placed_try(&p, 1, 0, GPB_MATH_FMA));
    assert_int_equal(gpu_calls(), before + 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        before = gpu_calls();
        bool right = placed_try(&p, 1, 0, GPB_MATH_FMA) && placed_try(&p, 0.5f, 2, GPB_MATH_FMA);
        _exit(!right ? 1 : gpu_calls() != before ? 2 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);       /* 1: wrong answer, 2: the child used the GPU */
    before = gpu_calls();
    assert_true(placed_try(&p, 1, 1, GPB_MATH_FMA));
    assert_int_equal(gpu_calls(), before + 1);
    placed_free(&p);
}

static void test_fork(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) fork_with(type);
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads), cmocka_unit_test(test_turns),
                                        cmocka_unit_test(test_fork) };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
