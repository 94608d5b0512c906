/* SPDX-License-Identifier: MIT */
/* The machine as measured; see machine.h. */
#include "src/learn/machine.h"

#include <emmintrin.h>
#include <time.h>

#include "dispatch/decide.h"
#include "src/copy/crew.h"
#include "src/copy/contention.h"
#include "src/host/host_threads.h"
#include "src/service/cores.h"

gpb_machine gpb_machine_here;

static _Atomic unsigned changes;         /* corrections that changed by a tenth or more */

unsigned gpb_machine_age(void) { return atomic_load_explicit(&changes, memory_order_relaxed); }

/* Threads that copy between the caller's memory and pinned memory: the crew and the caller. */
static int stagers(void) { return gpb_crew_size() + 1; }

static int class_of(int threads)
{
    int class = 0;
    while (class < GPB_MACHINE_THREADS - 1 && threads > 1 << class) class++;
    return class;
}

static gpb_learn *host_table(int threads) { return &gpb_machine_here.host[class_of(threads)]; }

static gpb_learn *gpu_table(const gpb_call *call, const gpb_facts *facts)
{
    bool device = gpb_facts_c_on_gpu(facts) && (!gpb_call_multiplies(call) || gpb_facts_on_gpu(facts));
    return &gpb_machine_here.gpu[device ? 1 : facts->learnt.contended ? 2 : 0];
}

/* The rate of staged copies. Threads copy at one rate, the link at another, and together they reach x y /
   sqrt(x^2 + y^2). With 10 GB/s per core and 55 on the link, 4, 8, 12 and 16 threads reach 32, 45, 50 and 52
   GB/s up; evidence/machine.md measured 30-35, 36-49, 47-50 and 55. Down, where the caller's memory is
   written, a core has four fifths of its rate: 28, 42, 48, 51 against 23-29, 40-46, 40-48, 45-50. */
static double staged(double copying, double link)
{
    const __m128d square = _mm_set_sd(copying * copying + link * link);
    return copying * link / _mm_cvtsd_f64(_mm_sqrt_sd(square, square));
}

/* The measured value, or until there is one a presumed value: that of an older link, and for a call a little
   more than on an H200 (11 us for launch and copies). */
static double known(_Atomic int64_t *value, double unit, double presumed)
{
    const int64_t measured = atomic_load_explicit(value, memory_order_relaxed);
    return measured ? unit * (double)measured : presumed;
}

static void fill(gpb_facts *facts, int threads)
{
    const double core = known(&gpb_machine_here.core_mbs, 1e-3, 9);
    const double link = known(&gpb_machine_here.dma_mbs, 1e-3, 25);
    const double each = stagers() > 1 ? stagers() * 0.5 * core : core;      /* of each direction while both
                                                                               run */
    facts->link.dma_gbs = link;
    facts->link.up_gbs = staged(each, link);
    facts->link.down_gbs = staged(0.8 * each, link);
    facts->link.call_s = known(&gpb_machine_here.launch_ns, 1e-9, 20e-6);
    facts->host.cores = threads;
    facts->host.core_gflops = 50;
}

/* The fast-reject threshold: calls with fewer products go to the host unplanned. It is derived from the
   learnt ratio at 40 x 40 x 40. */
static _Atomic double too_few;

static void count_too_few(int threads)
{
    const gpb_call typical = { .m = 40, .n = 40, .k = 40, .batch = 1, .x[GPB_C].uplo = 'G' };
    gpb_facts facts;
    fill(&facts, threads);
    facts.learnt.host_ratio = gpb_learn_ratio(host_table(threads), gpb_learn_key_of(&typical), true);
    atomic_store_explicit(&too_few, gpb_decide_too_few(&facts), memory_order_relaxed);
}

int gpb_machine_host_threads(void)
{
    const int cores = gpb_cores(), said = gpb_host_threads(), few = gpb_contention_few(cores);
    const int threads = said ? said : cores;
    return threads > few && gpb_host_threads_settable() && gpb_contention_spares() ? few : threads;
}

void gpb_machine_measured(void)
{
    atomic_fetch_add(&changes, 1);
    count_too_few(gpb_machine_host_threads());
}

double gpb_machine_too_few(void) { return atomic_load_explicit(&too_few, memory_order_relaxed); }

void gpb_machine_facts(const gpb_call *call, gpb_facts *facts)
{
    const gpb_learn_key key = gpb_learn_key_of(call);
    fill(facts, gpb_machine_host_threads());
    facts->learnt.contended = gpb_contention_is_high();
    gpb_learn_facts(host_table(facts->host.cores), gpu_table(call, facts), key, facts);
    facts->learnt.quiet_ratio = facts->learnt.gpu_ratio;
    if (facts->learnt.contended)
        facts->learnt.quiet_ratio = gpb_learn_ratio(&gpb_machine_here.gpu[0], key, false);
    if (gpb_contention_is_draining()) facts->learnt.gpu_ratio = facts->learnt.quiet_ratio;
    if (gpb_machine_too_few() == 0) count_too_few(facts->host.cores);
}

void gpb_machine_tried(const gpb_call *call, const gpb_facts *facts, bool gpu)
{
    gpb_learn_tried(gpu ? host_table(facts->host.cores) : gpu_table(call, facts), gpb_learn_key_of(call));
}

void gpb_machine_host_took(const gpb_call *call, int threads, double modelled_s, double seconds)
{
    if (!gpb_learn_add(host_table(threads), gpb_learn_key_of(call), modelled_s, seconds)) return;
    atomic_fetch_add(&changes, 1);
    count_too_few(threads);
}

bool gpb_machine_gpu_took(const gpb_call *call, const gpb_facts *facts, double modelled_s, double seconds)
{
    enum { MANY = 16, SECONDS = 10 };
    static _Atomic time_t last;
    static _Atomic unsigned saved;
    const bool moved = gpb_learn_add(gpu_table(call, facts), gpb_learn_key_of(call), modelled_s, seconds);
    if (moved) atomic_fetch_add(&changes, 1);
    const unsigned now_changes = gpb_machine_age();
    if (now_changes - atomic_load_explicit(&saved, memory_order_relaxed) < MANY) return false;
    const time_t now = time(NULL);
    time_t before = atomic_load(&last);
    if (now - before < SECONDS || !atomic_compare_exchange_strong(&last, &before, now)) return false;
    atomic_store(&saved, now_changes);
    return true;
}
