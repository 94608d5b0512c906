/* SPDX-License-Identifier: MIT */
/* A choice that is remembered is the one that would be made anew. Random questions, then the same with one
   thing changed, from four threads at once. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "dispatch/kernel_pick.h"

enum { THREADS = 4, QUESTIONS = 20000, CHANGES = 24 };

typedef struct question {
    gpb_call call;
    gpb_facts facts;
    gpb_policy policy;
    bool no_workspace;
} question;

static const void *const items[1];

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}
static int64_t below(uint64_t *state, int limit) { return (int64_t)(next(state) % (unsigned)limit); }

static int64_t size(uint64_t *state)
{
    static const int64_t sizes[] = { 0,   1,   4,   16,  31,   32,   63,   64,   65,   127,
                                     128, 256, 500, 512, 1000, 1024, 1536, 4096, 4097, 65536 };
    return sizes[below(state, sizeof sizes / sizeof *sizes)];
}

static enum gpb_place place(uint64_t *state) { return (enum gpb_place)below(state, GPB_PLACE_ELSEWHERE + 1); }
static const void *base(uint64_t *state)
{
    return (const void *)(uintptr_t)(4096 + (int[]){ 0, 256, 16, 4 }[below(state, 4)]);
}
static int64_t ld(uint64_t *state) { return 65536 + (int[]){ 0, 64, 16, 1 }[below(state, 4)]; }
static int64_t stride(uint64_t *state) { return (INT64_C(1) << 33) + 16 * below(state, 5); }

/* Draws one thing of a question again. */
static void change(question *q, int what, uint64_t *state)
{
    static const char *const kernels[] = { NULL, "naive", "warp_tile", "no such kernel" };
    static const int generations[] = { 75, 80, 86, 89, 90, 100, 120 };
    switch (what) {
    case 0: q->call.m = size(state); break;
    case 1: q->call.n = size(state); break;
    case 2: q->call.k = size(state); break;
    case 3: q->call.batch = 1 + below(state, 3) * 40; break;
    case 4: q->call.x[GPB_A].trans = "NTC"[below(state, 3)]; break;
    case 5: q->call.x[GPB_B].trans = "NTC"[below(state, 3)]; break;
    case 6: q->call.x[GPB_C].uplo = "GUL"[below(state, 3)]; break;
    case 7: q->call.alpha = (double)below(state, 2); break;
    case 8: q->call.beta = (double)below(state, 3) / 2; break;
    case 9: q->call.x[GPB_A].base = base(state); break;
    case 10: q->call.x[GPB_B].base = base(state); break;
    case 11: q->call.x[GPB_C].base = (void *)(uintptr_t)base(state); break;
    case 12:
        for (int x = 0; x < GPB_OPERANDS; x++) q->call.x[x].ld = ld(state);
        break;
    case 13:
        for (int x = GPB_A; x <= GPB_B; x++) q->call.x[x].stride = stride(state);
        break;
    case 14: q->call.x[GPB_A].array = below(state, 4) ? NULL : items; break;
    case 15: q->call.x[GPB_B].array = below(state, 4) ? NULL : items; break;
    case 16:
        for (int x = GPB_A; x <= GPB_B; x++) q->facts.where[x].place = place(state);
        break;
    case 17: q->facts.where[GPB_C].place = place(state); break;
    case 18: q->facts.gpu.arch = generations[below(state, sizeof generations / sizeof *generations)]; break;
    case 22: q->facts.gpu.sms = 40 + 46 * (int)below(state, 3); break;
    case 19: q->facts.gpu.bytes = INT64_C(1) << (20 + 8 * below(state, 3)); break;
    case 20:
        q->policy.math = (enum gpb_math_policy)below(state, 3);
        q->policy.splits = (int)(below(state, 3) * below(state, 5));
        break;
    case 21:
        q->policy.kernel = below(state, 2) ? NULL : kernels[below(state, 4)];
        q->no_workspace = below(state, 4) == 0;
        break;
    case 23: q->call.type = (enum gpb_type)below(state, GPB_TYPES); break;
    }
}

static atomic_int hits, different;

static void compare(const question *q)
{
    const gpb_choice remembered = gpb_kernel_pick(&q->call, &q->facts, &q->policy, q->no_workspace);
    const gpb_choice anew = gpb_kernel_pick_anew(&q->call, &q->facts, &q->policy, q->no_workspace);
    const gpb_choice again = gpb_kernel_pick(&q->call, &q->facts, &q->policy, q->no_workspace);
    const gpb_choice *const both[] = { &remembered, &again };
    for (int i = 0; i < 2; i++) {
        const gpb_choice *c = both[i];
        if (c->kernel == anew.kernel && c->fallback == anew.fallback && c->splits == anew.splits
            && c->streamk == anew.streamk && c->seconds == anew.seconds)
            continue;
        if (atomic_fetch_add(&different, 1) == 0)
            printf("%s, %d parts, %g s, and anew %s, %d parts, %g s\n", c->kernel ? c->kernel->name : "-",
                   c->splits, c->seconds, anew.kernel ? anew.kernel->name : "-", anew.splits, anew.seconds);
    }
    atomic_fetch_add(&hits, remembered.kernel != NULL);
}

static void *ask(void *number)
{
    uint64_t state = 88172645463325252u + 7919 * (uint64_t)(uintptr_t)number;
    for (int i = 0; i < QUESTIONS; i++) {
        question q = { .call = { .symbol = "sgemm_", .type = GPB_TYPE_s },
                       .facts = { .link.call_s = 1e-5, .learnt.gpu_ratio = 1, .learnt.host_ratio = 1 } };
        for (int what = 0; what < CHANGES; what++) change(&q, what, &state);
        compare(&q);
        for (int j = 0; j < 4; j++) {
            question other = q;
            change(&other, (int)below(&state, CHANGES), &state);
            compare(&other);
            compare(&q);
        }
    }
    return NULL;
}

static void memory(void **unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(different, 0);
    assert_true(hits > THREADS * QUESTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
