/* SPDX-License-Identifier: MIT */
/* Routing; see routing.h. */
#include "src/hub/routing.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "dispatch/decide.h"
#include "dispatch/learn.h"
#include "dispatch/numbers.h"
#include "src/copy/contention.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/host/host_threads.h"
#include "src/host/symbol.h"
#include "src/host/watch.h"
#include "src/learn/history.h"
#include "src/learn/machine.h"
#include "src/learn/ready.h"
#include "src/service/clock.h"
#include "src/service/cores.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/traps.h"

/* Nanoseconds that the GPU would have saved on calls that went to the host only because it was not
   started. */
static _Atomic int64_t credit_ns;

/* What the user wants of a call. */
static enum gpb_offload_when wanted_of_call(void)
{
    const enum gpb_offload_when when = (enum gpb_offload_when)gpb_option_number(GPB_OPTION_OFFLOAD);
    return when == GPB_OFFLOAD_EAGER ? GPB_OFFLOAD_AUTO : when;
}

static void note_first_call(void)
{
    if (wanted_of_call() == GPB_OFFLOAD_AUTO) gpb_history_begin();
}

__attribute__((constructor)) static void note_load(void)
{
    const bool eager = gpb_option_number(GPB_OPTION_OFFLOAD) == GPB_OFFLOAD_EAGER;
    if (wanted_of_call() == GPB_OFFLOAD_AUTO) gpb_history_load(eager);
    gpb_symbol_on_first(note_first_call);
}

gpb_policy gpb_routing_policy(void)
{
    const char *kernel = gpb_option_text(GPB_OPTION_KERNEL);
    if (kernel && !gpb_kernel_table_knows(kernel)) {
        gpb_log_warn("GPUBLAS_KERNEL=%s: no kernel has that name; choosing by shape", kernel);
        kernel = NULL;
    }
    return (gpb_policy){ .offload = wanted_of_call(),
                         .math = (enum gpb_math_policy)gpb_option_number(GPB_OPTION_MATH), .kernel = kernel,
                         .splits = (int)gpb_option_number(GPB_OPTION_SPLITS) };
}

/* Calls that are on the GPU now: small, large. */
static atomic_int running[2];

/* Its address tells this thread from others. */
static _Thread_local char self __attribute__((tls_model("initial-exec")));

bool gpb_routing_enter_gpu(bool large)
{
    gpb_contention_called_by(&self);
    return atomic_fetch_add(&running[large], 1) == 0 && !atomic_load(&running[!large]);
}

void gpb_routing_leave_gpu(bool large) { atomic_fetch_sub(&running[large], 1); }

void gpb_routing_copied(const gpb_facts *facts, int64_t up, int64_t down)
{
    const double seconds = 1e-9 * ((double)up / facts->link.up_gbs + (double)down / facts->link.down_gbs);
    bool staged = false;
    for (int x = 0; x < GPB_OPERANDS; x++) staged |= gpb_where_is(facts, x, GPB_PLACE_HOST);
    if (staged) gpb_contention_copied(seconds);
}

/* How many calls share the link with a new one: all of its own kind, and one of the other kind. */
static int callers(bool large)
{
    return atomic_load_explicit(&running[large], memory_order_relaxed)
           + (atomic_load_explicit(&running[!large], memory_order_relaxed) > 0);
}

/* Calls that the host BLAS's threads are working on together now, and when this thread's began
   (gpb_clock_ns; 0: it is none of them). Counted only while there is a GPU that could take them. */
static atomic_int on_host;
static _Thread_local int64_t began_ns __attribute__((tls_model("initial-exec")));
/* Without contention the host would have this thread's call all the same. */
static _Thread_local bool its_own __attribute__((tls_model("initial-exec")));
/* What the host's threads are if this thread's call computes with fewer; else 0. */
static _Thread_local int lowered_from __attribute__((tls_model("initial-exec")));

static double multiplications(const gpb_call *g)
{
    return (double)g->m * (double)g->n * (double)g->k * (double)g->batch * gpb_call_products(g);
}

/* As many of SGEMM's as take the host as long: by operations, and by the bytes of a real number. No division,
   because every call comes here. */
static double single_multiplications(const gpb_call *g)
{
    const gpb_type_row *own = gpb_type_of(g->type), *single = gpb_type_of(GPB_TYPE_s);
    const double inverse = 1.0 / ((double)single->flops * (double)single->bytes);
    return multiplications(g) * inverse * own->flops * (double)gpb_type_real_bytes(g->type);
}

/* A core is left to the thread that starts the GPU. Otherwise all of the host's threads wait for the one
   that shares its core: beside products of 4096 on 16 cores a start lost 139 ms of the host's work and took
   526 ms, with a core left 35 and 348 (H200). While the GPU works, the crew's cores are left to it if that
   pays. OpenBLAS uses several threads from 2^18 multiplications on. */
void gpb_routing_enter_host(const gpb_call *g, const gpb_host_call *record)
{
    gpb_routing_leave_host();
    gpb_host_threads_recover();
    gpb_contention_called_by(&self);
    const bool several = multiplications(g) > 0x1p18 && gpb_host_threads() != 1 && gpb_gpu_started();
    const bool starts = record->leaves_core || gpb_ready_is_near();
    if (several || starts)
        lowered_from = gpb_host_threads_lower(starts ? (int)max(gpb_host_threads(), gpb_cores()) - 1
                                                     : gpb_machine_host_threads());
    if (!several) return;
    atomic_fetch_add_explicit(&on_host, 1, memory_order_relaxed);
    its_own = record->missed_s == 0 && !record->tries;
    if (record->missed_s > 0) gpb_contention_gains(record->missed_s);
    began_ns = gpb_clock_ns();
}

/* Busy threads are taken to be calls times threads of the host, because with OpenMP each caller has threads
   of its own. OpenBLAS's own threads serve one call at a time, so there the product is too large and
   contention is found rather too early. A call's only thread spins for nobody. */
static void leave_several(void)
{
    const int calls = atomic_fetch_sub_explicit(&on_host, 1, memory_order_relaxed);
    const int threads = gpb_host_threads(), cores = gpb_cores();
    const double seconds = 1e-9 * (double)(gpb_clock_ns() - began_ns);
    if (threads != 1) gpb_contention_begin(calls * threads, cores);
    if (its_own)
        gpb_contention_host_took(seconds, threads, lowered_from ? lowered_from : threads, cores);
}

__attribute__((noinline)) static void leave_host(void)
{
    if (began_ns) leave_several();
    began_ns = 0;
    if (lowered_from) gpb_host_threads_restore();
    lowered_from = 0;
}

/* Also called by the next call of a thread, which may have left the host by longjmp, or be one that the
   host's LAPACK makes. */
void gpb_routing_leave_host(void)
{
    if (began_ns || lowered_from) leave_host();
}

/* Hashes of sizes for which the host was found to be faster, because facts and plan cost half a microsecond.
   The hash includes the age of what was learnt. If two sizes collide they share a decision about speed and
   nothing else. */
enum { REMEMBERED = 256 };
static _Atomic uint64_t host_memo[REMEMBERED];

static uint64_t hash_of(const gpb_call *call)
{
    return gpb_learn_hash(call) ^ (uint64_t)gpb_machine_age() << 32;
}

/* True if the call is so small, or its size so well known, that no facts are needed. One call in 256 of a
   thread gets its facts all the same, so that the host's speed goes on being learnt. */
static bool is_known_hosts(const gpb_call *g)
{
    static _Thread_local unsigned calls __attribute__((tls_model("initial-exec")));
    if (++calls % 256 == 0) return false;
    if (single_multiplications(g) < gpb_machine_too_few()) return true;
    const uint64_t hash = hash_of(g);
    return atomic_load_explicit(&host_memo[hash % REMEMBERED], memory_order_relaxed) == hash;
}

/* Long calls are not remembered, because they have the time for facts and each of them teaches something. */
void gpb_routing_remember(const gpb_call *g, const gpb_plan *plan)
{
    const uint64_t hash = hash_of(g);
    _Atomic uint64_t *place = &host_memo[hash % REMEMBERED];
    const bool settled = !plan->gpu && !plan->waits && !plan->tries && plan->missed_s == 0;
    if (settled && plan->host_s < 2e-4) atomic_store_explicit(place, hash, memory_order_relaxed);
    else if (atomic_load_explicit(place, memory_order_relaxed) == hash)
        atomic_store_explicit(place, 0, memory_order_relaxed);
}

static void gather(const gpb_call *call, bool libcuda, gpb_facts *facts)
{
    int cancel;
    /* A thread cancelled inside the driver would keep its locks. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_place_facts(call, libcuda, facts);
    gpb_machine_facts(call, facts);
    facts->now.starting = gpb_ready_is_near();
    const bool others = libcuda && !gpb_gpu_started() && !gpb_ready_is_near(); /* libcuda is the program's */
    const bool active = others && gpb_gpu_in_use();
    if (others) gpb_history_keep_nothing();
    facts->now.start_s = gpb_ready_left_s(active);
    facts->now.start_cost_s = gpb_ready_cost_s(active);
    facts->now.history = gpb_history_known();
    facts->now.callers = callers(gpb_facts_large(call, facts));
    facts->now.host_callers = atomic_load_explicit(&on_host, memory_order_relaxed);
    facts->now.credit_s = 1e-9 * (double)atomic_load_explicit(&credit_ns, memory_order_relaxed);
    pthread_setcancelstate(cancel, NULL);
}

/* What the GPU saves, or would if it had been started, is the program's history. */
static void note_saved(const gpb_plan *plan, const gpb_facts *facts, const gpb_policy *user)
{
    const bool counts = user->offload == GPB_OFFLOAD_AUTO && !gpb_facts_on_gpu(facts);
    if (counts && (plan->waits || plan->gpu) && plan->host_s > plan->gpu_s)
        gpb_history_note(plan->host_s - plan->gpu_s, plan->gpu);
}

gpb_plan gpb_routing_decide(const gpb_call *call, bool libcuda, const gpb_policy *user, gpb_facts *facts)
{
    for (bool waited = false;; waited = true) {
        gather(call, libcuda, facts);
        const gpb_plan plan = gpb_decide(call, facts, user);
        /* This call starts a time of forced offloading, so decide again. */
        if (plan.missed_s > 0 && gpb_contention_missed(plan.missed_s, 1 - plan.host_s / plan.gpu_s)) continue;
        if (plan.waits) atomic_fetch_add(&credit_ns, (int64_t)(1e9 * (plan.host_s - plan.gpu_s)));
        /* A GPU that was started for an operand on it is not measured yet. That is done as soon as a call
           comes from host memory. */
        const bool unmeasured = plan.gpu && user->offload == GPB_OFFLOAD_AUTO && !gpb_facts_on_gpu(facts)
                                && gpb_gpu_started();
        if (plan.starts || unmeasured) gpb_ready_begin();
        if (plan.tries) gpb_machine_tried(call, facts, plan.gpu);
        if (!plan.gpu || facts->now.start_s == 0 || waited
            || !gpb_ready_await(user->offload == GPB_OFFLOAD_AUTO, plan.wait_s)) {
            note_saved(&plan, facts, user);
            return plan;
        }
    }
}

gpb_plan gpb_routing_predict(const gpb_call *call, const gpb_policy *user, gpb_facts *facts)
{
    gather(call, gpb_gpu_started(), facts);
    return gpb_decide(call, facts, user);
}

__attribute__((noinline)) static double gain(const gpb_call *call, unsigned mxcsr)
{
    const gpb_policy user = gpb_routing_policy();
    bool libcuda;
    gpb_facts facts;
    if (gpb_routing_reject_fast(call, mxcsr, &libcuda)) return 0;
    gather(call, libcuda, &facts);
    const gpb_plan plan = gpb_decide(call, &facts, &user);
    if (!(plan.gpu || plan.waits) || gpb_facts_on_gpu(&facts)) return 0;
    return user.offload == GPB_OFFLOAD_AUTO ? plan.host_s / plan.gpu_s : HUGE_VAL;
}

double gpb_routing_gain(const gpb_call *call)
{
    gpb_traps traps;
    gpb_traps_hold(&traps);
    const double times = gain(call, traps.mode);
    gpb_traps_release(&traps);
    return times;
}

/* As GPUs do not. A program that rounds downwards and upwards (interval arithmetic) relies on what that
   gives. */
static bool rounds_otherwise(unsigned mxcsr)
{
    enum { ROUNDING = 0x6000 };                        /* 0: to nearest */
    return mxcsr & ROUNDING;
}

/* No operand that is used has to be fetched for the host. */
__attribute__((noinline)) static bool host_reaches(const gpb_call *call, bool libcuda, uint64_t now)
{
    gpb_facts facts;
    int before;
    if (gpb_place_probed_host(call, now)) return true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    gpb_place_facts(call, libcuda, &facts);
    pthread_setcancelstate(before, NULL);
    return !gpb_facts_c_on_gpu(&facts) && !(gpb_call_multiplies(call) && gpb_facts_on_gpu(&facts));
}

const char *gpb_routing_reject_fast(const gpb_call *call, unsigned mxcsr, bool *libcuda)
{
    const uint64_t now = __builtin_ia32_rdtsc();       /* 10 to 20 ns, so only once a call */
    const enum gpb_offload_when when = wanted_of_call();
    *libcuda = gpb_watch_scan(now) && when != GPB_OFFLOAD_NEVER;
    if (gpb_linker_forking()) return "called inside a fork handler";
    const bool surely_host = gpb_place_surely_host(call, *libcuda);
    const char *forbidden = gpb_decide_forbids(call, when, surely_host, !surely_host || gpb_gpu_possible());
    if (forbidden) return forbidden;
    if (rounds_otherwise(mxcsr) && (surely_host || host_reaches(call, *libcuda, now)))
        return "a rounding mode other than to nearest";
    if (when != GPB_OFFLOAD_AUTO || !is_known_hosts(call)) return NULL;
    return surely_host || gpb_place_probed_host(call, now) ? gpb_decide_too_small : NULL;
}
