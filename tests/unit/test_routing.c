/* SPDX-License-Identifier: MIT */
/* Routing on machines that the model does not fit. Random shapes are called a few times each. Plans use
   what was learnt so far. Times come, with noise, from a host and a GPU of which the model has only a
   wrong guess. The cost is compared with that of the better side. usage: test_routing */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/learn.h"

enum { SHAPES = 300, PASSES = 24 };

/* How a machine differs from the model: factors that change with the size (from 2^10 to 2^40 operations)
   and with the shape. */
typedef struct machine {
    const char *name;
    double host_small, host_large, host_skinny, gpu_small, gpu_large, gpu_skinny;
} machine;

static const machine machines[] = {
    { "as modelled",            1,    1,    1,    1,   1,   1 },
    { "a host twice as fast",   0.5,  0.5,  0.5,  1,   1,   1 },
    { "a host four times slower", 4,  4,    4,    1,   1,   1 },
    { "a reference BLAS",       8,    25,   12,   1,   1,   1 },
    { "slow when small",        3,    0.7,  2,    1,   1,   1 },
    { "slow when large",        0.7,  3,    1.5,  1,   1,   1 },
    { "a slow link",            1,    1,    1,    2,   4,   5 },
    { "a fast GPU",             1,    1,    1,    0.6, 0.4, 0.5 },
    { "all of it",              0.4,  1.5,  3,    2,   0.8, 2.5 },
};

static uint64_t seed = 88172645463325252u;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int64_t size(void) { return (int64_t)exp2(13 * uniform()); }

/* Five per cent of noise; one call in twenty takes twice as long. */
static double noise(void) { return (1 + 0.05 * uniform()) * (uniform() < 0.05 ? 2 : 1); }

static double between(const gpb_call *g, double small, double large, double skinny)
{
    double m = (double)g->m, n = (double)g->n, k = (double)g->k, share = (log2(2 * m * n * k) - 10) / 30;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    double factor = exp2(log2(small) * (1 - share) + log2(large) * share);
    double least = fmin(m, fmin(n, k)), most = fmax(m, fmax(n, k));
    return 8 * least <= most ? sqrt(factor * skinny) : factor;
}

/* A factor of the size's own: up to `octaves` octaves up or down, the same for each of its calls. */
static double own(const gpb_call *g, int side, double octaves)
{
    const uint64_t hash = (gpb_learn_hash(g) + (uint64_t)side) * 0x9e3779b97f4a7c15;
    return exp2(octaves * ((double)(hash >> 11) / 4503599627370496.0 - 1));
}

static gpb_call shape(void)
{
    return (gpb_call){ .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N', .x[GPB_B].trans = 'N',
                       .x[GPB_C].uplo = 'G', .m = size(), .n = size(),
                       .k = size(), .alpha = 1, .batch = 1 };
}

typedef struct result {
    double geometric, worst, worst_host;      /* from medians of a shape's passes: time spent over the
                                                 better side's, and over the host's */
    double learning;                          /* geometric mean over all passes */
} result;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One call: planned with what is known, timed with the true times, learnt from. Returns whether it went to
   the GPU. */
static bool goes_to_gpu(const gpb_call *call, gpb_facts *facts, gpb_learn *host, gpb_learn *gpu,
                        const double *times)
{
    const gpb_learn_key key = gpb_learn_key_of(call);
    gpb_learn_facts(host, gpu, key, facts);
    const gpb_plan plan = gpb_decide(call, facts, &(gpb_policy){ 0 });
    if (plan.tries) gpb_learn_tried(plan.gpu ? host : gpu, key);
    if (plan.gpu) gpb_learn_add(gpu, key, plan.gpu_s / facts->learnt.gpu_ratio, times[1] * noise());
    else gpb_learn_add(host, key, plan.host_s / facts->learnt.host_ratio, times[0] * noise());
    return plan.gpu;
}

/* True times: the model's, times the machine's factors, times the size's own. */
static void true_times(const gpb_call *call, const gpb_facts *base, const machine *m, double spread,
                       double *times)
{
    gpb_facts facts = *base;
    facts.learnt.host_ratio = facts.learnt.gpu_ratio = 1;
    const gpb_plan plan = gpb_decide(call, &facts, &(gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
    times[0] = plan.host_s * between(call, m->host_small, m->host_large, m->host_skinny)
               * own(call, 0, spread);
    times[1] = plan.gpu_s * between(call, m->gpu_small, m->gpu_large, m->gpu_skinny) * own(call, 1, spread);
}

static result play(const machine *m, const gpb_facts *base, double spread)
{
    static gpb_learn host, gpu;
    static gpb_call calls[SHAPES];
    memset(&host, 0, sizeof host);
    memset(&gpu, 0, sizeof gpu);
    for (int i = 0; i < SHAPES; i++) calls[i] = shape();
    static double times[SHAPES][2], spent[SHAPES][PASSES];
    result r = { 0 };
    for (int i = 0; i < SHAPES; i++) true_times(&calls[i], base, m, spread, times[i]);
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < SHAPES; i++) {
            gpb_facts facts = *base;
            spent[i][pass] = times[i][goes_to_gpu(&calls[i], &facts, &host, &gpu, times[i])];
        }
    for (int i = 0; i < SHAPES; i++) {
        const double best = fmin(times[i][0], times[i][1]);
        for (int pass = 0; pass < PASSES; pass++) r.learning += log(spent[i][pass] / best) / SHAPES / PASSES;
        qsort(spent[i], PASSES, sizeof spent[i][0], by_size);
        const double median = spent[i][PASSES / 2];
        r.geometric += log(median / best) / SHAPES;
        r.worst = fmax(r.worst, median / best);
        r.worst_host = fmax(r.worst_host, median / times[i][0]);
    }
    r.geometric = exp(r.geometric);
    r.learning = exp(r.learning);
    return r;
}

static const gpb_facts h200 = { .gpu.arch = 90, .gpu.sms = 132, .gpu.bytes = INT64_C(100) << 30,
                                .link.up_gbs = 45, .link.down_gbs = 42, .link.dma_gbs = 50,
                                .link.call_s = 12e-6, .learnt.gpu_ratio = 1, .learnt.quiet_ratio = 1,
                                .host.cores = 16, .host.core_gflops = 50, .learnt.host_ratio = 1 };

static void judge(const machine *m, int threads, double spread)
{
    gpb_facts base = h200;
    base.host.cores = threads;
    const result r = play(m, &base, spread);
    print_message("%-24s %2d threads, sizes %s: %.3f of the better (%.3f while learning), at most %.2f; at "
                  "most %.2f of the host\n",
                  m->name, threads, spread > 0 ? "differ" : "alike ", r.geometric, r.learning, r.worst,
                  r.worst_host);
    assert_true(r.geometric < 1.05 && r.learning < 1.06 + spread / 25);
    assert_true(r.worst_host < 1.25);
}

/* The project's goals: a geometric mean of 1.05 over 300 shapes, and none above 1.25 times the host. */
static void never_slower(void **state)
{
    (void)state;
    static const int threads[] = { 1, 4, 16 };
    static const double spreads[] = { 0, 0.35, 1.5 };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int t = 0; t < 3; t++) for (int s = 0; s < 3; s++) judge(&machines[i], threads[t], spreads[s]);
}

/* ---- the rules, one by one */

static gpb_plan ask(gpb_facts facts)
{
    const gpb_call call = { .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N',
                            .x[GPB_B].trans = 'N', .x[GPB_C].uplo = 'G', .m = 1024, .n = 1024, .k = 1024,
                            .alpha = 1, .batch = 1, .x[GPB_A].ld = 1024, .x[GPB_B].ld = 1024,
                                .x[GPB_C].ld = 1024 };
    return gpb_decide(&call, &facts, &(gpb_policy){ 0 });
}

/* An H200 on which calls take `gpu_of_host` times as long on the GPU as on the host. */
static gpb_facts where(double gpu_of_host)
{
    gpb_facts facts = h200;
    const gpb_plan plan = ask(facts);
    facts.learnt.gpu_ratio = facts.learnt.quiet_ratio = gpu_of_host * plan.host_s / plan.gpu_s;
    return facts;
}

static void is(gpb_facts facts, bool gpu, bool tries, const char *why)
{
    const gpb_plan plan = ask(facts);
    assert_true(plan.gpu == gpu && plan.tries == tries);
    assert_string_equal(plan.why, why);
}

/* If only one side of a size is well known, the other is tried, unless that looks hopeless. */
static void tries(void **state)
{
    (void)state;
    for (int started = 0; started < 2; started++)
        for (int known = 0; known < 4; known++) {
            gpb_facts slow = where(1.5), slower = where(2.5), quick = where(0.6), quicker = where(0.2);
            gpb_facts *all[] = { &slow, &slower, &quick, &quicker };
            for (int i = 0; i < 4; i++) {
                all[i]->learnt.try_gpu = known & 1;
                all[i]->learnt.try_host = known & 2;
                all[i]->now.start_s = started ? 0 : 1e-6;
            }
            is(slow, started && known & 1, started && known & 1,
               started && known & 1 ? "trying the GPU, to learn its speed" : "faster on the host");
            is(slower, false, false, "faster on the host");
            is(quick, !(known & 2), known & 2,
               known & 2 ? "trying the host, to learn its speed" : "faster on the GPU");
            is(quicker, true, false, "faster on the GPU");
        }
    for (int other = 0; other < 2; other++) {      /* not while others call */
        gpb_facts slow = where(1.5), quick = where(0.3);
        slow.learnt.try_gpu = quick.learnt.try_host = true;
        slow.now.callers = quick.now.callers = other;
        slow.now.host_callers = quick.now.host_callers = !other;
        assert_false(ask(slow).tries || ask(quick).tries);
    }
}

/* If contention alone keeps a call from the GPU, the plan says how much time the GPU would have saved. */
static void contended(void **state)
{
    (void)state;
    gpb_facts facts = where(2.5);
    assert_true(ask(facts).missed_s == 0);
    facts.learnt.contended = true;
    assert_true(ask(facts).missed_s == 0);
    facts.learnt.quiet_ratio = facts.learnt.gpu_ratio / 5;
    const gpb_plan plan = ask(facts);
    is(facts, false, false, "faster on the host (other threads hold the cores)");
    assert_true(fabs(plan.missed_s - plan.host_s / 2) < 0.01 * plan.host_s);
    facts.learnt.gpu_ratio = facts.learnt.quiet_ratio;
    assert_true(ask(facts).gpu && ask(facts).missed_s == 0);
    facts.now.start_s = 10;
    facts.learnt.gpu_ratio *= 5;
    assert_true(!ask(facts).gpu && ask(facts).missed_s == 0);
}

/* The start must have been paid for by what was missed, this call included; a history moves the price. */
static void starts(void **state)
{
    (void)state;
    gpb_facts facts = h200;
    facts.now.start_s = 0.5;
    facts.now.start_cost_s = 0.2;
    const double saved_s = ask(facts).host_s - ask(facts).gpu_s;
    const struct { double credit_s; gpb_history history; bool starts; } cases[] = {
        { 0.19 - saved_s, { .runs = 0 }, false }, { 0.21 - saved_s, { .runs = 0 }, true },
        { 0, { 2, 2, 3, { 3, 2 } }, true },
        { 0.4, { 2, 2, 0.3, { 0.3, 0.1 } }, false }, { 0.6, { 2, 2, 0.3, { 0.3, 0.1 } }, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        facts.now.credit_s = cases[i].credit_s;
        facts.now.history = cases[i].history;
        assert_true(ask(facts).waits && ask(facts).starts == cases[i].starts);
    }
    facts.now.history = (gpb_history){ .runs = 0 };
    facts.now.credit_s = 0.05 - saved_s;
    assert_true(ask(facts).waits && !ask(facts).leaves_core);
    facts.now.credit_s = 0.07 - saved_s;                 /* a third of the price */
    assert_true(ask(facts).waits && !ask(facts).starts && ask(facts).leaves_core);
    facts.now.start_s = 0;
    assert_true(!ask(facts).leaves_core);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(never_slower), cmocka_unit_test(tries),
                                        cmocka_unit_test(contended), cmocka_unit_test(starts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
