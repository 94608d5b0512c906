/* SPDX-License-Identifier: MIT */
/* The crowd; see contention.h. */
#include "src/copy/contention.h"

#include <stdatomic.h>
#include <stdint.h>

#include "src/service/clock.h"

#define CROWDED_NS INT64_C(150000000)    /* OpenBLAS's threads look for work for 2^28 cycles, 134 ms at 2 GHz, MKL's for 200 ms */
enum {
    ENOUGH = 6,                          /* workers: they fill one direction of PCIe gen5 (crew.c) */
    MOST_FAILURES = 10
};

static _Atomic int64_t crowded_until, beside_until, ending_until;      /* on gpb_clock_ns; 0: never */
static atomic_int spare = ENOUGH;        /* cores, until beside_until; never fewer */
static _Atomic int64_t missed_ns;
static atomic_int failures;              /* of attempts to end it, since one was not cut short */

static int64_t load(_Atomic int64_t *value) { return atomic_load_explicit(value, memory_order_relaxed); }

/* That time is not over. The clock is read only where it has ever begun. */
static bool lasts(_Atomic int64_t *until) { return load(until) && gpb_clock_ns() < load(until); }

/* As long as any of them are about, those count that leave fewest. Threads may do this at once, and one's cores be kept with another's time:
   some workers too many or too few then, at least ENOUGH. */
static void begin_beside(int left)
{
    if (!lasts(&beside_until) || left < atomic_load_explicit(&spare, memory_order_relaxed))
        atomic_store_explicit(&spare, left, memory_order_relaxed);
    atomic_store_explicit(&beside_until, gpb_clock_ns() + CROWDED_NS, memory_order_relaxed);
}

/* Threads may do this at once: an attempt that both see ends once. Threads that leave cores enough end none: it is the others that are to go
   to sleep. */
void gpb_contention_begin(int threads, int cores)
{
    if (threads > 0 && cores - threads >= ENOUGH) {
        begin_beside(cores - threads);
        return;
    }
    const int64_t now = gpb_clock_ns(), ending = load(&ending_until);
    if (ending && atomic_exchange(&ending_until, 0)) {
        if (now >= ending) atomic_store(&failures, 0);
        else if (atomic_load(&failures) < MOST_FAILURES) atomic_fetch_add(&failures, 1);
    }
    atomic_store_explicit(&crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

bool gpb_contention_is_high(void) { return lasts(&crowded_until); }

int gpb_contention_workers(void) { return lasts(&beside_until) ? atomic_load_explicit(&spare, memory_order_relaxed) : GPB_CONTENTION_ALL_WORKERS; }

bool gpb_contention_is_draining(void) { return lasts(&ending_until); }

/* Each failure doubles what has to be missed before the next attempt: a program that always has work for the host loses little by them. */
bool gpb_contention_missed(double saved_s, double lost)
{
    const int64_t missed = atomic_fetch_add(&missed_ns, (int64_t)(1e9 * saved_s));
    if ((double)missed < lost * (double)(CROWDED_NS << atomic_load(&failures))) return false;
    atomic_store(&missed_ns, 0);
    atomic_store(&ending_until, gpb_clock_ns() + CROWDED_NS);
    return true;
}
