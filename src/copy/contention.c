/* SPDX-License-Identifier: MIT */
/* Contention; see contention.h. */
#include "src/copy/contention.h"

#include <stdatomic.h>
#include <stdint.h>

#include "dispatch/numbers.h"
#include "src/service/clock.h"

/* OpenBLAS's threads look for work for 2^28 cycles, 134 ms at 2 GHz; MKL's for 200 ms. */
#define HOST_SPINS_NS INT64_C(150000000)
enum {
    ENOUGH = 6,                          /* workers that fill one direction of PCIe gen5 (crew.c) */
    BOTH = 10,                           /* and both directions */
    MAX_FAILURES = 10
};
/* While there is a crowd all calls are measured, so it stays known for as long as calls copy now and then. */
#define CROWD_STAYS_NS INT64_C(1000000000)

static _Atomic int64_t high_until, limited_until, draining_until;      /* on gpb_clock_ns; 0: never */
static atomic_int spare = ENOUGH;        /* cores that the host's threads leave free, until limited_until; at
                                            least ENOUGH */
static _Atomic int64_t crowd_until;
static atomic_int crowd_leaves;          /* cores, until crowd_until */
static _Atomic int64_t missed_ns;
static atomic_int failures;              /* attempts to let the host's threads go idle that were cut short,
                                            since one was not */

/* What GPU calls gain if calls on the host leave cores, and what these pay for it, lately. Together at most
   WEIGHED_NS, beyond which both are halved: a program that does something else from now on loses as much
   before that is noticed. */
#define WEIGHED_NS INT64_C(100000000)
static _Atomic int64_t gained_ns, paid_ns;
/* The thread that called last, and until when several count as calling. */
#define SEVERAL_NS INT64_C(1000000000)
static _Atomic(const void *) caller;
static _Atomic int64_t several_until;

static int64_t load(_Atomic int64_t *value) { return atomic_load_explicit(value, memory_order_relaxed); }

/* That time is not over. The clock is read only if the time ever began. */
static bool lasts(_Atomic int64_t *until) { return load(until) && gpb_clock_ns() < load(until); }

/* While several groups of host threads are active, the one that leaves the fewest cores counts. Two threads
   may do this at once, and the cores of one may be kept with the time of the other: then a few workers too
   many or too few are awake, but at least ENOUGH. */
static void begin_limited(int left)
{
    if (!lasts(&limited_until) || left < atomic_load_explicit(&spare, memory_order_relaxed))
        atomic_store_explicit(&spare, left, memory_order_relaxed);
    atomic_store_explicit(&limited_until, gpb_clock_ns() + HOST_SPINS_NS, memory_order_relaxed);
}

bool gpb_contention_is_crowd(void) { return lasts(&crowd_until); }

/* The crowd leaves too few cores. */
static bool is_dense(void)
{
    return gpb_contention_is_crowd() && atomic_load_explicit(&crowd_leaves, memory_order_relaxed) < ENOUGH;
}

/* An attempt to let the host's threads go idle is over. Several threads may find this at once; it ends
   once. */
static void end_attempt(bool in_vain)
{
    if (!atomic_exchange(&draining_until, 0)) return;
    if (!in_vain) atomic_store(&failures, 0);
    else if (atomic_load(&failures) < MAX_FAILURES) atomic_fetch_add(&failures, 1);
}

/* Host threads that leave enough cores do not end an attempt, because the others are those that shall go
   idle. */
void gpb_contention_begin(int threads, int cores)
{
    if (threads > 0 && cores - threads >= ENOUGH) {
        begin_limited(cores - threads);
        return;
    }
    const int64_t now = gpb_clock_ns(), draining = load(&draining_until);
    if (draining) end_attempt(now < draining);
    atomic_store_explicit(&high_until, now + HOST_SPINS_NS, memory_order_relaxed);
}

/* Found only when the host's threads are idle. So if there is a crowd soon after an attempt, the attempt was
   in vain. */
void gpb_contention_crowd(int threads, int cores)
{
    const int64_t now = gpb_clock_ns(), draining = load(&draining_until);
    atomic_store_explicit(&crowd_leaves, cores - threads, memory_order_relaxed);
    atomic_store_explicit(&crowd_until, threads > 0 ? now + CROWD_STAYS_NS : 0, memory_order_relaxed);
    if (draining && now - draining < 3 * HOST_SPINS_NS && is_dense()) end_attempt(true);
}

bool gpb_contention_is_high(void) { return lasts(&high_until) || is_dense(); }

int gpb_contention_workers(void)
{
    int workers = GPB_CONTENTION_ALL_WORKERS;
    if (lasts(&limited_until)) workers = atomic_load_explicit(&spare, memory_order_relaxed);
    if (!gpb_contention_is_crowd()) return workers;
    const int left = atomic_load_explicit(&crowd_leaves, memory_order_relaxed);
    return left >= ENOUGH && left < workers ? left : workers;
}

/* A mix of 120 sizes, on 16 cores: sgemm 90 ms with all threads and 37 with 6, of 31 with each size where it
   is the fastest by itself; dgemm 127 and 65, of 52; cgemm 98, and 89 with 10, of 54. On 4 cores sgemm 109,
   57 with one thread, of 55 (H200: evidence/host-cores.md). */
int gpb_contention_few(int cores) { return (int)max(1, max(cores - BOTH, cores / 4)); }

/* Another thread may ask how many threads the host has while a call has lowered them, and set that number
   again much later, as threadpoolctl does around scikit-learn's loops. */
void gpb_contention_called_by(const void *thread)
{
    const void *before = atomic_load_explicit(&caller, memory_order_relaxed);
    if (before == thread) return;
    atomic_store_explicit(&caller, thread, memory_order_relaxed);
    if (before) atomic_store_explicit(&several_until, gpb_clock_ns() + SEVERAL_NS, memory_order_relaxed);
}

bool gpb_contention_spares(void) { return load(&gained_ns) > load(&paid_ns) && !lasts(&several_until); }

static void weigh(_Atomic int64_t *side, double seconds)
{
    const double most = 1e-9 * (double)WEIGHED_NS;
    atomic_fetch_add_explicit(side, (int64_t)(1e9 * (seconds < most ? seconds : most)), memory_order_relaxed);
    const int64_t gained = load(&gained_ns), paid = load(&paid_ns);
    if (gained + paid <= WEIGHED_NS) return;
    atomic_store_explicit(&gained_ns, gained / 2, memory_order_relaxed);
    atomic_store_explicit(&paid_ns, paid / 2, memory_order_relaxed);
}

void gpb_contention_gains(double seconds) { weigh(&gained_ns, seconds); }

/* Copies take three times as long beside the host's threads, and more (evidence/host-threads.md). */
void gpb_contention_copied(double seconds)
{
    enum { LONGER = 2 };
    gpb_contention_gains(seconds * LONGER);
}

/* The host's work is taken to be shared evenly by its threads. */
void gpb_contention_host_took(double seconds, int threads, int all, int cores)
{
    const int few = gpb_contention_few(cores);
    if (all <= few) return;
    weigh(&paid_ns, threads < all ? seconds - seconds * threads / all : seconds * all / few - seconds);
}

bool gpb_contention_is_draining(void) { return lasts(&draining_until); }

/* MKL's threads may still look for work when they have stopped to count as contention. */
bool gpb_contention_is_hosts(void)
{
    const int64_t high = load(&high_until), draining = load(&draining_until);
    if (lasts(&limited_until)) return true;
    return (high || draining) && gpb_clock_ns() - (high > draining ? high : draining) < HOST_SPINS_NS;
}

/* Each failed attempt doubles the loss that must add up before the next one. So a program that always has
   work for the host loses little by attempts. None begins beside a crowd, which stays when the host's threads
   go idle. */
bool gpb_contention_missed(double saved_s, double lost)
{
    if (is_dense()) return false;
    const int64_t missed = atomic_fetch_add(&missed_ns, (int64_t)(1e9 * saved_s));
    if ((double)missed < lost * (double)(HOST_SPINS_NS << atomic_load(&failures))) return false;
    atomic_store(&missed_ns, 0);
    atomic_store(&draining_until, gpb_clock_ns() + HOST_SPINS_NS);
    return true;
}
