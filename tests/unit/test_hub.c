/* SPDX-License-Identifier: MIT */
/* The hub with real plans, and with a host BLAS, a GPU and a clock of the test's own. Programs of a few
   sizes show what routing costs them. After each call the host's threads spin for 134 ms; while they do,
   the GPU takes `contended` times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/service/clock.h"

static double now_s;
static int64_t its_ns(void) { return (int64_t)(1e9 * now_s); }
static double its_s(void) { return now_s; }
#define gpb_clock_ns its_ns
#define gpb_clock_s its_s
#include "src/copy/contention.c"
#include "src/copy/scale.c"
#include "src/learn/machine.c"
#include "src/hub/routing.c"
#include "src/hub/tally.c"
#include "src/hub/trace.c"
#include "src/hub/offload.c"
#include "src/hub/resident.c"

/* ---- the world */

typedef struct world {
    double contended;
    int threads, all;                        /* of the host: now, and if nobody lowers them */
    bool told;                               /* the host can be told to use fewer threads */
} world;
static world here;
static double host_worked_s = -1;            /* when the host's threads last worked */
static int on_gpu, asked;  /* calls that the GPU computed; calls for which facts were gathered */

/* One size; seconds on the host, and on a GPU without contention. */
typedef struct product { gpb_call call; double host_s, gpu_s; } product;
static const product *current;

static product product_of(int n, double host_s, double gpu_s)
{
    return (product){ { .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N', .x[GPB_B].trans = 'N',
                        .x[GPB_C].uplo = 'G', .m = n, .n = n, .k = n, .x[GPB_A].ld = n,
                        .x[GPB_B].ld = n, .x[GPB_C].ld = n, .alpha = 1, .batch = 1 }, host_s, gpu_s };
}

static bool crowd;                           /* Other threads of the program spin, too. */

static double gpu_takes(const product *p)
{
    return p->gpu_s * (crowd || now_s < host_worked_s + 0.134 ? here.contended : 1);
}

gpb_outcome gpb_compute(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan)
{
    (void)call, (void)facts, (void)policy;
    now_s += gpu_takes(current);
    on_gpu++;
    const int64_t square = 4 * current->call.m * current->call.n;
    return (gpb_outcome){ .done = true, .kernel = plan.kernel, .bytes_up = 2 * square, .bytes_down = square };
}

void gpb_place_facts(const gpb_call *call, bool libcuda, gpb_facts *facts)
{
    (void)libcuda;
    asked++;
    *facts = (gpb_facts){ .gpu.arch = 90, .gpu.sms = 132, .gpu.bytes = INT64_C(100) << 30 };
    (void)call;
}

void gpb_touch(const gpb_call *call, const gpb_facts *facts) { (void)call, (void)facts; }
bool gpb_gpu_start(void) { return true; }
void gpb_ready_begin(void) { }
bool gpb_ready_await(bool measured, double most_s)
{
    (void)measured;
    (void)most_s;
    return true;
}
bool gpb_ready_is_near(void) { return false; }
double gpb_ready_left_s(bool active)
{
    (void)active;
    return 0;
}
double gpb_ready_cost_s(bool active)
{
    (void)active;
    return 0.2;
}
void gpb_history_load(bool eager) { (void)eager; }
void gpb_history_begin(void) { }
void gpb_history_keep_nothing(void) { }
void gpb_history_lose(double more_s) { (void)more_s; }
void gpb_history_note(double saved_s, bool on_gpu) { (void)saved_s, (void)on_gpu; }
gpb_history gpb_history_known(void) { return (gpb_history){ 0 }; }
void gpb_symbol_on_first(void (*first)(void)) { (void)first; }
bool gpb_gpu_in_use(void) { return false; }
bool gpb_gpu_started(void) { return true; }
void gpb_ready_save(void) { }
bool gpb_gpu_possible(void) { return true; }
const char *gpb_gpu_why(void) { return ""; }
bool gpb_place_surely_host(const gpb_call *call, bool libcuda) { return call && libcuda; }
bool gpb_place_probed_host(const gpb_call *call, uint64_t now) { return call && now; }
bool gpb_place_unreachable(const gpb_call *call) { return !call; }
int gpb_host_threads(void) { return here.threads; }
bool gpb_host_threads_settable(void) { return here.told; }
int gpb_host_threads_lower(int most)
{
    if (!here.told || here.threads <= most) return 0;
    here.threads = most;
    return here.all;
}
void gpb_host_threads_recover(void) { }
void gpb_host_threads_restore(void) { here.threads = here.all; }
bool gpb_watch_scan(uint64_t now) { return now != 0; }
bool gpb_linker_forking(void) { return false; }
void gpb_host_multiply(const gpb_call *call) { (void)call; }
int gpb_crew_size(void) { return 13; }
bool gpb_lapack_inside_host(void) { return false; }
gpb_resident_outcome gpb_resident_run(const gpb_resident *w, const gpb_facts *facts, const gpb_policy *user)
{
    (void)w, (void)facts, (void)user;
    return (gpb_resident_outcome){ .failure = "no solver" };
}
static bool suspected;
bool gpb_crowd_is_suspected(void) { return suspected; }
bool gpb_ask_here(void) { return false; }
void gpb_ask_product(const gpb_call *call, const char *of) { (void)call, (void)of; }
gpb_facts gpb_ask_on_device(const gpb_facts *facts) { return *facts; }
void gpb_ask_answer(const gpb_call *call, const char *of, const gpb_facts *facts, const gpb_plan *plan,
                    const gpb_plan *forced, double device_s)
{
    (void)call, (void)of, (void)facts, (void)plan, (void)forced, (void)device_s;
}
int gpb_cores(void) { return 16; }
gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts)
{
    (void)call, (void)facts;
    return (gpb_verify){ 0 };
}
bool gpb_verify_end(gpb_verify *verify, const gpb_call *call, const gpb_facts *facts, const gpb_outcome *out)
{
    return verify && call && facts && out;
}

/* One call, wherever it goes. Returns the seconds that it took. */
static double does(const product *p)
{
    const double begin_s = now_s;
    gpb_host_call record;
    current = p;
    if (!gpb_offload(&p->call, &record)) {
        now_s += p->host_s * here.all / here.threads;
        if (gpb_cores() - here.threads < 6) host_worked_s = now_s;
        gpb_offload_done(&record);
    }
    return now_s - begin_s;
}

static void forget(double contended, int threads)
{
    memset(&gpb_machine_here, 0, sizeof gpb_machine_here);
    atomic_store(&gpb_machine_here.dma_mbs, 50000);
    atomic_store(&gpb_machine_here.core_mbs, 10000);
    atomic_store(&gpb_machine_here.launch_ns, 12000);
    atomic_fetch_add(&changes, 1);           /* this voids the decisions that were remembered */
    atomic_store(&failures, 0);
    atomic_store(&missed_ns, 0);
    atomic_store(&high_until, 0);
    atomic_store(&limited_until, 0);
    atomic_store(&draining_until, 0);
    now_s += 10;
    host_worked_s = -1;
    atomic_store(&gained_ns, 0);
    atomic_store(&paid_ns, 0);
    here = (world){ contended, threads, threads, false };
}

/* The host works before each of these calls, as it does while the GPU is being started. */
static void while_the_host_works(const product *p, int calls)
{
    for (int i = 0; i < calls; i++) {
        host_worked_s = now_s;
        gpb_contention_begin(here.threads, gpb_cores());
        does(p);
    }
}

/* ---- programs */

/* n = 512, as measured on an H200 with 16 cores: 0.33 ms on the host, 0.13 on the GPU, 0.7 on the GPU
   beside the host's threads. A loop that begins under contention stays on the host for less than a second
   and then goes to the GPU for good. */
static void one_size(void **state)
{
    (void)state;
    const product p = product_of(512, 0.33e-3, 0.13e-3);
    forget(5.4, 16);
    while_the_host_works(&p, 20);
    const double begin_s = now_s;
    double last = 0;
    while (now_s < begin_s + 2) last = does(&p);
    assert_true(fabs(last - p.gpu_s) < 1e-9);
    on_gpu = 0;
    for (int i = 0; i < 1000; i++) does(&p);
    assert_int_equal(on_gpu, 1000);
}

/* One size alternates with another that always goes to the host and so keeps its threads spinning. The
   attempts soon cost less than a fiftieth. */
static void with_the_host(void **state)
{
    (void)state;
    const product p = product_of(512, 0.33e-3, 0.13e-3), small = product_of(100, 40e-6, 200e-6);
    forget(5.4, 16);
    while_the_host_works(&p, 20);
    double spent = 0;
    const int calls = 20000;
    for (int i = 0; i < calls; i++) spent += does(&p) + does(&small);
    assert_true(spent < 1.02 * calls * (p.host_s + small.host_s));
}

/* The same beside a host that can be told to leave cores: it soon does, and both calls are where they are
   faster. When the GPU has little to do it is not told any more. */
static void with_a_host_that_is_told(void **state)
{
    (void)state;
    const product p = product_of(512, 0.33e-3, 0.13e-3), small = product_of(100, 40e-6, 200e-6);
    forget(5.4, 16);
    here.told = true;
    while_the_host_works(&p, 20);
    double spent = 0, begin_s = now_s;
    while (now_s < begin_s + 0.5) {
        does(&p);
        does(&small);
    }
    for (int i = 0; i < 1000; i++) spent += does(&p) + does(&small);
    assert_true(spent < 1.001 * 1000 * (p.gpu_s + small.host_s * 16 / 6));
    assert_int_equal(here.threads, 16);      /* between calls */
    begin_s = now_s;
    for (int i = 0; i < 1000; i++) {
        for (int x = 0; x < 100; x++) does(&small);
        does(&p);
    }
    spent = now_s - begin_s;
    assert_true(spent < 1.05 * 1000 * (p.host_s + 100 * small.host_s));
}

/* The same with a solver that is the host's. */
static void with_the_hosts_solver(void **state)
{
    (void)state;
    enum { N = 100 };
    const double host_s = 60e-6;
    const product p = product_of(512, 0.33e-3, 0.13e-3);
    const gpb_factor a = { .symbol = "sgesv_", .type = GPB_TYPE_s, .uplo = 'G', .m = N, .n = N, .lda = N };
    const gpb_resident solve = { .system = { .a = a, .trans = 'N', .nrhs = 1, .ldb = N }, .factors = true,
                                 .solves = true };
    int64_t info;
    forget(5.4, 16);
    here.told = true;
    while_the_host_works(&p, 20);
    double spent = 0, begin_s = now_s;
    for (int i = 0; i < 3000; i++) {
        if (i == 1000) begin_s = now_s;
        does(&p);
        assert_int_equal(gpb_resident_offload(&solve, &info), GPB_RESIDENT_HOST);
        now_s += host_s * here.all / here.threads;
        if (gpb_cores() - here.threads < 6) host_worked_s = now_s;
        gpb_routing_leave_host();
        assert_int_equal(here.threads, 16);
    }
    spent = now_s - begin_s;
    assert_true(spent < 1.001 * 2000 * (p.gpu_s + host_s * 16 / 6));
}

/* Large calls are faster on the GPU even beside the host's threads. */
static void large_beside_the_host(void **state)
{
    (void)state;
    const product p = product_of(2048, 16e-3, 1e-3), small = product_of(100, 40e-6, 200e-6);
    forget(2, 16);
    double spent = 0;
    for (int i = 0; i < 100; i++) {
        does(&p);
        does(&small);
    }
    for (int i = 0; i < 100; i++) spent += does(&p) + does(&small);
    assert_true(spent < 1.05 * 100 * (2 * p.gpu_s + small.host_s));
}

/* A host of four threads leaves the crew twelve cores. So what is faster on the GPU goes there, whether or
   not those threads spin. */
static void beside_few(void **state)
{
    (void)state;
    const product p = product_of(512, 0.6e-3, 0.13e-3), small = product_of(100, 40e-6, 200e-6);
    forget(1, 4);
    while_the_host_works(&p, 20);
    double spent = 0;
    for (int i = 0; i < 1000; i++) {
        does(&small);
        assert_true(!gpb_contention_is_high());
        spent += does(&p);
    }
    assert_true(fabs(spent - 1000 * p.gpu_s) < 1e-6);
    assert_true(gpb_contention_workers() == 12 && atomic_load(&missed_ns) == 0
                && !gpb_contention_is_draining());
}

/* A crowd makes the GPU slower than the host, so calls go to the host for as long as it is there. No call is
   sacrificed to let the crowd sleep. */
static void beside_a_crowd(void **state)
{
    (void)state;
    const product p = product_of(512, 0.33e-3, 0.13e-3);
    forget(5.4, 16);
    for (int i = 0; i < 100; i++) does(&p);
    crowd = true;
    double spent = 0;
    for (int i = 0; i < 4000; i++) {
        if (i % 100 == 0) gpb_contention_crowd(15, 16);
        const double took = does(&p);
        if (i >= 100) spent += took;
        assert_true(!gpb_contention_is_draining());
    }
    assert_true(spent < 1.01 * 3900 * p.host_s);
    crowd = false;
    gpb_contention_crowd(0, 16);
    const double begin_s = now_s;
    double last = 0;
    while (now_s < begin_s + 2) last = does(&p);
    assert_true(fabs(last - p.gpu_s) < 1e-9);
}

/* Calls that a crowd slows down before it is known tell nothing of calls without one. */
static void before_a_crowd_is_known(void **state)
{
    (void)state;
    const product p = product_of(512, 0.33e-3, 0.13e-3), slow = product_of(512, 0.33e-3, 1.5e-3);
    forget(1, 16);
    for (int i = 0; i < 100; i++) does(&p);
    suspected = true;
    for (int i = 0; i < 1000; i++) does(&slow);
    suspected = false;
    on_gpu = 0;
    for (int i = 0; i < 100; i++) does(&p);
    assert_int_equal(on_gpu, 100);
}

/* If the model is wrong about a size, either way, the other side is tried. */
static void wrong_models(void **state)
{
    (void)state;
    const product host = product_of(1024, 0.5e-3, 1.2e-3), gpu = product_of(300, 0.4e-3, 0.06e-3);
    forget(1, 16);
    for (int i = 0; i < 50; i++) {
        does(&host);
        does(&gpu);
    }
    assert_true(fabs(does(&host) - host.host_s) < 1e-9 && fabs(does(&gpu) - gpu.gpu_s) < 1e-9);
}

/* ---- SYR2K: one call of two products */

static product twofold(int n, double host_s, double gpu_s)
{
    product p = product_of(n, host_s, gpu_s);
    p.call.routine = GPB_ROUTINE_SYR2K;
    p.call.x[GPB_B].trans = 'T';
    p.call.x[GPB_C].uplo = 'L';
    return p;
}

/* It goes where it is faster as a whole, and its flops are those of both. */
static void both_products(void **state)
{
    (void)state;
    const product host = twofold(1024, 1e-3, 2.4e-3), gpu = twofold(1000, 8e-3, 0.4e-3);
    forget(1, 16);
    for (int i = 0; i < 50; i++) {
        does(&host);
        does(&gpu);
    }
    assert_true(fabs(does(&host) - host.host_s) < 1e-9);
    const int before = on_gpu;
    assert_true(fabs(does(&gpu) - gpu.gpu_s) < 1e-9);
    assert_int_equal(on_gpu, before + 1);
    assert_true(gpb_trace_flops(&gpu.call) == 2e9);
}

/* ---- what is remembered of sizes that are the host's */

/* Returns how many of these calls had their facts gathered. */
static int looked_at(const product *p, int calls)
{
    asked = 0;
    for (int i = 0; i < calls; i++) does(p);
    return asked;
}

/* Calls until both sides are known and nothing more is learnt. The host takes exactly what the model
   predicts. */
static product settled(void)
{
    product p = product_of(100, 40e-6, 200e-6);
    forget(1, 16);
    looked_at(&p, 256 * 64);
    return p;
}

/* Of a size that is known to be the host's, facts are gathered for one call in 256, no more and no fewer,
   whatever else is called. */
static void remembers(void **state)
{
    (void)state;
    const product p = settled(), other = product_of(101, 40e-6, 200e-6);
    assert_int_equal(looked_at(&p, 256 * 8), 8);
    looked_at(&other, 256 * 64);
    const unsigned age = gpb_machine_age();
    asked = 0;
    for (int i = 0; i < 128 * 8; i++) {
        does(&p);
        does(&other);
    }
    assert_int_equal(asked, 8);
    assert_int_equal(gpb_machine_age(), age);
}

/* Whatever is learnt voids what is remembered. Then the next call of each size has its facts gathered,
   once. */
static void forgets(void **state)
{
    (void)state;
    const product p = settled();
    for (int i = 0; i < 20; i++) {
        atomic_fetch_add(&changes, 1);
        assert_int_equal(looked_at(&p, 1), 1);
        assert_in_range(looked_at(&p, 100), 0, 1);
    }
    /* If the host slows down, the calls that gather facts find out, and the size goes to the GPU. */
    product slow = p;
    slow.host_s = 4e-3;
    looked_at(&slow, 256 * 64);
    on_gpu = 0;
    looked_at(&slow, 256);
    assert_int_equal(on_gpu, 256);
}

/* Decisions for the moment only are not remembered: of a size that takes long on the host, and of one
   whose other side is still to be tried. */
static void not_remembered(void **state)
{
    (void)state;
    const product p = product_of(200, 1e-3, 20e-3);
    forget(1, 16);
    looked_at(&p, 256 * 8);
    assert_int_equal(looked_at(&p, 100), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_size), cmocka_unit_test(with_the_host),
                                        cmocka_unit_test(with_a_host_that_is_told),
                                        cmocka_unit_test(with_the_hosts_solver),
                                        cmocka_unit_test(large_beside_the_host), cmocka_unit_test(beside_few),
                                        cmocka_unit_test(beside_a_crowd),
                                        cmocka_unit_test(before_a_crowd_is_known),
                                        cmocka_unit_test(wrong_models), cmocka_unit_test(both_products),
                                        cmocka_unit_test(remembers), cmocka_unit_test(forgets),
                                        cmocka_unit_test(not_remembered) };
    return cmocka_run_group_tests_name("hub", tests, NULL, NULL);
}
