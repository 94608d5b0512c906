/* SPDX-License-Identifier: MIT */
/* The crowd; see crowd.h. The kernel adds up the CPU time of a running thread at ticks, 1 to 10 ms apart. Of
   short calls a few contain a tick and most do not, so only the sum of many calls says something. */
#include "src/copy/crowd.h"

#include <stdatomic.h>
#include <time.h>

#include "dispatch/numbers.h"
#include "src/copy/contention.h"
#include "src/service/clock.h"
#include "src/service/cores.h"
#include "src/service/log.h"

/* Calls that last so long together are enough for a verdict: seven ticks of 4 ms. */
#define ENOUGH_NS INT64_C(30000000)
/* After a verdict that there is no crowd, nothing is measured for three times as long as the verdict took,
   and for this long at least. Of calls that follow each other directly one in eleven is measured, of others
   about one in four. It takes 2.4 to 3.7 us longer (four readings of CPU clocks; 2 to 66 threads). While
   there is a crowd, all calls are measured. */
#define REST_NS INT64_C(300000000)
/* Calls that lie so far apart do not tell of one situation. There is no verdict. */
#define OLD_NS INT64_C(1000000000)

/* Written by one call at a time, read by the workers. */
static _Atomic int64_t began_ns;         /* when the call that is measured began; 0: none is */
static _Atomic int64_t before_ns;        /* the time of all calls measured before it; never reset */
static int64_t others_began_ns;          /* the process's CPU time without its caller's, when it began */
static _Thread_local bool mine __attribute__((tls_model("initial-exec")));       /* it is this thread's */

/* Since the last verdict: the time of calls; the CPU time in it of all threads but the callers; the time in
   it that workers were awake, and their CPU time. */
static _Atomic int64_t calls_ns, spent_ns, awake_ns, ran_ns;
static _Atomic int64_t since_ns, last_ns;        /* when the first of these calls began; the last ended */
static _Atomic int64_t rests_until;
static atomic_bool measures, suspected;

static int64_t load(_Atomic int64_t *value) { return atomic_load_explicit(value, memory_order_relaxed); }

static void store(_Atomic int64_t *value, int64_t now)
{
    atomic_store_explicit(value, now, memory_order_relaxed);
}

static void add(_Atomic int64_t *value, int64_t more)
{
    atomic_fetch_add_explicit(value, more, memory_order_relaxed);
}

static int64_t cpu_ns(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) == 0 ? now.tv_sec * INT64_C(1000000000) + now.tv_nsec : 0;
}

/* ---- the verdict */

static void forget(void)
{
    store(&calls_ns, 0);
    store(&spent_ns, 0);
    store(&awake_ns, 0);
    store(&ran_ns, 0);
    atomic_store_explicit(&suspected, false, memory_order_relaxed);
}

/* The number of cores that the others got. If workers were awake and ran nearly all the time, the others did
   not get them from us. That a worker did not run says little alone, because the kernel may have put it
   beside another thread of ours while a core idles: on 2 cores of a virtual machine that had nothing else to
   do, it ran 0.01 to 1 of the time, and the others got less than 0.4 cores in each of 1262 verdicts
   (tests/bench/results/nvidia-h200/evidence/spinners.md). Once a crowd is known, workers sleep rather than
   wait for a core (crew.c), so what they get does not tell any more. If the crowd has got fewer cores than it
   has threads, fewer workers are awake next time, and the next verdict finds more of it. */
static int others(bool known)
{
    const double calls = (double)load(&calls_ns), ran = (double)load(&ran_ns);
    const double awake = (double)load(&awake_ns);
    const bool came = !known && awake > calls / 4;
    if (came && ran > 0.9 * awake) return 0;
    return (int)(((double)load(&spent_ns) - ran) / calls + 0.5);
}

static void rest(int64_t now, int64_t least)
{
    const int64_t took = min(load(&last_ns) - load(&since_ns), OLD_NS);
    store(&rests_until, now + max(least, 3 * took));
}

static void judge(int64_t now)
{
    const bool known = gpb_contention_is_crowd();
    const int threads = others(known);
    forget();
    gpb_contention_crowd(threads, gpb_cores());
    if (threads < 1) rest(now, REST_NS);
    if (threads > 0 && !known)
        gpb_log_debug("other threads hold cores while calls copy: %d of %d", threads, gpb_cores());
    if (threads < 1 && known) gpb_log_debug("no other threads hold cores any more while calls copy");
}

bool gpb_crowd_is_suspected(void) { return atomic_load_explicit(&suspected, memory_order_relaxed); }

/* ---- calls */

static int64_t spent_by_others(void)
{
    return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The verdict on earlier calls comes now, because workers report what they did for a call after its end.
   Calls that ended long ago do not tell of now. */
void gpb_crowd_call_begins(void)
{
    const int64_t now = gpb_clock_ns();
    if (now - load(&last_ns) > OLD_NS) {
        forget();
    } else if (load(&calls_ns) >= ENOUGH_NS) {
        judge(now);
    } else if (load(&calls_ns) && now - load(&since_ns) > OLD_NS) {
        forget();
        rest(now, 0);
    }
    const bool on = now >= load(&rests_until) && !gpb_contention_is_hosts();
    atomic_store_explicit(&measures, on, memory_order_relaxed);
    mine = on;
    if (!on) return;
    if (!load(&calls_ns)) store(&since_ns, now);
    others_began_ns = spent_by_others();
    store(&began_ns, now);
}

void gpb_crowd_disturb(void) { store(&began_ns, 0); }

/* The clock is read before the CPU clocks, as at the beginning, because the kernel often suspends a thread
   that has just read a CPU clock. What others do then is so between both or neither pair of readings. */
void gpb_crowd_call_ends(void)
{
    const int64_t began = load(&began_ns);
    if (!mine) return;
    mine = false;
    if (!began) return;
    const int64_t now = gpb_clock_ns(), spent = spent_by_others() - others_began_ns;
    store(&began_ns, 0);
    store(&last_ns, now);
    add(&before_ns, now - began);
    add(&calls_ns, now - began);
    add(&spent_ns, spent);
    const bool known = gpb_contention_is_crowd();
    atomic_store_explicit(&suspected, !known && others(false) > 0, memory_order_relaxed);
}

/* ---- workers */

static int64_t beside_ns(int64_t now)
{
    const int64_t began = load(&began_ns);
    return load(&before_ns) + (began && began < now ? now - began : 0);
}

/* A worker also runs for a moment between calls. That CPU time counts, too, up to the time that it was awake
   in calls. So the others rather seem to have got less than they did. */
static void report(gpb_crowd_worker *worker, int64_t now)
{
    const int64_t cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID), beside = beside_ns(now);
    const int64_t awake = beside - worker->beside_ns, ran = cpu - worker->cpu_ns;
    if (worker->counts && awake > 0) {
        add(&awake_ns, awake);
        add(&ran_ns, ran < awake ? ran : awake);
    }
    worker->cpu_ns = cpu;
    worker->beside_ns = beside;
}

void gpb_crowd_worker_looks(gpb_crowd_worker *worker, int64_t now)
{
    const bool measured = atomic_load_explicit(&measures, memory_order_relaxed);
    if (measured) report(worker, now);
    worker->counts = measured;
}

void gpb_crowd_worker_sleeps(gpb_crowd_worker *worker)
{
    if (worker->counts) report(worker, gpb_clock_ns());
    worker->counts = false;
}

void gpb_crowd_in_child(void)
{
    forget();
    store(&began_ns, 0);
    mine = false;
}
