/* SPDX-License-Identifier: MIT */
/* Getting ready; see ready.h. No call waits for a thread of ours without a limit, because that thread may need the dynamic linker, which a
   caller that waits holds if it is in a library's constructor, and because a driver or a home folder may hang. */
#include "src/learn/ready.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "dispatch/numbers.h"
#include "dispatch/plan.h"
#include "src/gpu/gpu.h"
#include "src/gpu/lanes.h"
#include "src/learn/calibrate.h"
#include "src/service/clock.h"
#include "src/service/log.h"
#include "src/service/thread.h"

enum readiness { UNREADY, GETTING_READY, READY };      /* a thread is at it, from the start to the last measurement; it is through */

#define CALIBRATION_S 0.02
#define LINKER_S 0.1                     /* whoever is inside dlopen for longer is not waited for: a library's constructor, or an opening of many */

static _Atomic int readiness = UNREADY;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_ready = PTHREAD_COND_INITIALIZER;
static _Atomic double begun_s;
static atomic_bool was_started;          /* when getting ready began: only measuring was left to do */
static atomic_bool passed;               /* the thread that starts the GPUs has been inside the dynamic linker, and has left it */

static void tell(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&is_ready);
    pthread_mutex_unlock(&lock);
}

static void enter_start(void)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_driver_pass_linker();
    atomic_store(&passed, true);
}

static void *start_alone(void *unused)
{
    enter_start();
    gpb_gpu_start();
    tell();
    return unused;
}

static void *get_ready(void *unused)
{
    enter_start();
    gpb_calibrate_read();
    const bool started = gpb_gpu_start();
    tell();
    gpb_gpu_occupy(started);
    const bool measured = started && !gpb_gpu_leaving() && gpb_calibrate();
    if (started && !gpb_gpu_leaving()) gpb_lanes_prepare();
    gpb_gpu_occupy(false);
    atomic_store(&readiness, READY);
    tell();
    if (measured) gpb_calibrate_save();
    return unused;
}

static void *save(void *unused)
{
    gpb_calibrate_save();
    return unused;
}

/* Only what was read or measured whole: a process that did neither (GPUBLAS_OFFLOAD=always) would put less in its place. */
void gpb_ready_save(void)
{
    if (gpb_gpu_started() && atomic_load(&readiness) == READY) gpb_thread_begin(save, 0);
}

/* Before a thread can see that another has begun: since when it is to count. */
static void note_begin(void)
{
    double never = 0;
    atomic_compare_exchange_strong(&begun_s, &never, gpb_clock_s());
}

void gpb_ready_begin(void)
{
    int unready = UNREADY;
    if (!gpb_gpu_possible() || atomic_load(&readiness) != UNREADY) return;
    gpb_gpu_touch();              /* first: no child may wait for a thread that it does not have */
    note_begin();
    if (!atomic_compare_exchange_strong(&readiness, &unready, GETTING_READY)) return;
    atomic_store(&was_started, gpb_gpu_started());
    atomic_store(&begun_s, gpb_clock_s());
    if (gpb_thread_begin(get_ready, 0)) atomic_store(&readiness, READY);       /* a call that must will start it, and nothing is measured */
}

/* What no call needs measured. Where no thread is to be had, this one starts it. */
static void start_apart(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (gpb_ready_is_near() || !gpb_gpu_untried()) return;
    note_begin();
    gpb_gpu_touch();
    if (atomic_flag_test_and_set(&begun)) return;
    if (gpb_thread_begin(start_alone, 0)) gpb_gpu_start();
}

static bool is_awaited(bool measured)
{
    return gpb_gpu_possible() && !gpb_gpu_leaving() && (measured ? gpb_ready_is_near() : gpb_gpu_untried());
}

/* The thread cannot get into the dynamic linker, perhaps because of this one. */
static bool is_held_up(void) { return !atomic_load(&passed) && gpb_clock_s() > atomic_load(&begun_s) + LINKER_S; }

/* In slices, for the clock that pthreads wait by may be set. */
static void wait_a_little(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_cond_timedwait(&is_ready, &lock, &until);
}

bool gpb_ready_await(bool measured, double most_s)
{
    int cancel;
    if (measured) gpb_ready_begin();
    else start_apart();
    const double until_s = min(gpb_clock_s() + most_s, atomic_load(&begun_s) + GPB_PLAN_MAX_START_S);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    while (is_awaited(measured) && gpb_clock_s() < until_s && !is_held_up()) wait_a_little();
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
    if (!gpb_gpu_untried() || gpb_gpu_leaving()) return gpb_gpu_started();
    if (measured ? !gpb_ready_is_near() : is_held_up()) return gpb_gpu_start();      /* no thread was to be had, or none gets anywhere */
    if (!measured)
        gpb_log_warn("the GPU has not started in %.0f s; the host computes until it has", GPB_PLAN_MAX_START_S);
    return false;
}

bool gpb_ready_is_near(void) { return atomic_load(&readiness) == GETTING_READY; }

/* It may take longer than expected: then as long again as it is late, or a tenth of what was expected. */
double gpb_ready_left_s(void)
{
    if (!gpb_ready_is_near()) return gpb_gpu_started() ? 0 : gpb_gpu_start_s();
    const double expected = atomic_load(&was_started) ? CALIBRATION_S : gpb_gpu_start_s();
    const double taken = gpb_clock_s() - atomic_load(&begun_s);
    return max(expected - taken, max(taken - expected, expected / 10));
}
