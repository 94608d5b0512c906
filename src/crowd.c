/* SPDX-License-Identifier: MIT */
/* The crowd; see crowd.h. */
#include "src/crowd.h"

#include <stdatomic.h>
#include <stdint.h>

#include "src/clock.h"

#define CROWDED_NS INT64_C(150000000)    /* OpenBLAS's threads look for work for 2^28 cycles, 134 ms at 2 GHz, MKL's for 200 ms */
enum { MOST_FAILURES = 10 };

static _Atomic int64_t crowded_until, ending_until;      /* on gpb_clock_ns; 0: never */
static _Atomic int64_t missed_ns;
static atomic_int failures;              /* of attempts to end it, since one was not cut short */

static int64_t load(_Atomic int64_t *value) { return atomic_load_explicit(value, memory_order_relaxed); }

/* Threads may do this at once: an attempt that both see ends once. */
void gpb_crowd_begin(void)
{
    const int64_t now = gpb_clock_ns(), ending = load(&ending_until);
    if (ending && atomic_exchange(&ending_until, 0)) {
        if (now >= ending) atomic_store(&failures, 0);
        else if (atomic_load(&failures) < MOST_FAILURES) atomic_fetch_add(&failures, 1);
    }
    atomic_store_explicit(&crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

bool gpb_crowded(void) { return load(&crowded_until) && gpb_clock_ns() < load(&crowded_until); }

bool gpb_crowd_ending(void) { return load(&ending_until) && gpb_clock_ns() < load(&ending_until); }

/* Each failure doubles what has to be missed before the next attempt: a program that always has work for the host loses little by them. */
bool gpb_crowd_missed(double saved_s, double lost)
{
    const int64_t missed = atomic_fetch_add(&missed_ns, (int64_t)(1e9 * saved_s));
    if ((double)missed < lost * (double)(CROWDED_NS << atomic_load(&failures))) return false;
    atomic_store(&missed_ns, 0);
    atomic_store(&ending_until, gpb_clock_ns() + CROWDED_NS);
    return true;
}
