/* SPDX-License-Identifier: MIT */
/* Getting ready; see ready.h. No call waits for our threads without a limit. A thread of ours may need the
   dynamic linker, and a caller that runs in a library's constructor holds it. A driver or a home folder may
   hang. */
#include "src/learn/ready.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "dispatch/numbers.h"
#include "dispatch/plan.h"
#include "src/gpu/gpu.h"
#include "src/gpu/lanes.h"
#include "src/learn/calibrate.h"
#include "src/learn/history.h"
#include "src/learn/saved.h"
#include "src/service/clock.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/thread.h"

enum readiness { UNREADY, GETTING_READY, READY };      /* GETTING_READY: a thread is at work, from the start
                                                          of the GPUs to the last measurement */

#define CALIBRATION_S 0.02
/* Until it is measured: a start beside a host BLAS that leaves it a core of 16 loses 35 to 70 ms of its work.
   At the program's end the context takes 90 ms, whatever was freed before: 50 of them if there was only
   cuInit (tests/bench/results/nvidia-h200/evidence/program-ends.md). In a process with a context only modules
   and pinned memory are left to make (H200). */
#define LOST_S 0.04
#define ACTIVE_LOST_S 0.03
#define END_S 0.09
#define ACTIVE_START_S 0.05
/* Nobody waits longer for the dynamic linker: a library's constructor may be in it, or an opening of many
   libraries. */
#define LINKER_S 0.1

static _Atomic int readiness = UNREADY;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_ready = PTHREAD_COND_INITIALIZER;
static _Atomic double begun_s;
static atomic_bool was_started;          /* when getting ready began; then only measuring was left to do */
static atomic_bool passed;               /* the thread that starts the GPUs has been inside the dynamic
                                            linker, and has left it */

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
    gpb_saved_read();
    const bool alone = gpb_gpu_untried(), active = alone && gpb_gpu_in_use();
    const bool started = gpb_gpu_start();
    tell();
    gpb_gpu_occupy(started);
    if (started && !gpb_gpu_leaving()) gpb_lanes_prepare();
    const bool measured = started && !gpb_gpu_leaving() && gpb_calibrate();
    atomic_store(&readiness, READY);
    tell();
    if (started && !measured && !gpb_gpu_leaving()) gpb_calibrate_warm();
    gpb_gpu_occupy(false);
    if (started && alone) gpb_history_started(active, gpb_clock_s() - atomic_load(&begun_s));
    if (measured) gpb_saved_write();
    return unused;
}

static void *save(void *unused)
{
    gpb_saved_write();
    return unused;
}

/* Not in a process that did not measure; see gpb_ready_save. */
bool gpb_ready_save_now(void)
{
    return gpb_gpu_started() && atomic_load(&readiness) == READY && gpb_saved_write();
}

/* Saves only if the machine was measured or read completely. A process that did neither
   (GPUBLAS_OFFLOAD=always) would replace the file by one with less. */
void gpb_ready_save(void)
{
    if (gpb_gpu_started() && atomic_load(&readiness) == READY) gpb_thread_begin(save, 0);
}

/* Sets the time from which the start counts, before another thread can see that the start has begun. */
static void note_begin(void)
{
    double never = 0;
    atomic_compare_exchange_strong(&begun_s, &never, gpb_clock_s());
}

void gpb_ready_begin(void)
{
    int unready = UNREADY;
    if (!gpb_gpu_possible() || atomic_load(&readiness) != UNREADY) return;
    gpb_gpu_touch();              /* first, because a child must not wait for a thread that it does not
                                     have */
    note_begin();
    if (!atomic_compare_exchange_strong(&readiness, &unready, GETTING_READY)) return;
    atomic_store(&was_started, gpb_gpu_started());
    atomic_store(&begun_s, gpb_clock_s());
    /* Without a thread nothing is measured, and a call that needs the GPU starts it. */
    if (gpb_thread_begin(get_ready, 0)) atomic_store(&readiness, READY);
}

/* Starts the GPUs alone, for a call that needs no measurements. If no thread can be had, this thread starts
   them. */
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

/* The thread cannot get into the dynamic linker, perhaps because this thread holds it. */
static bool is_blocked(void)
{
    return !atomic_load(&passed) && gpb_clock_s() > atomic_load(&begun_s) + LINKER_S;
}

/* Waits in short steps, because the clock of pthread_cond_timedwait may be set meanwhile. */
static void wait_a_little(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
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
    while (is_awaited(measured) && gpb_clock_s() < until_s && !is_blocked()) wait_a_little();
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
    if (!gpb_gpu_untried() || gpb_gpu_leaving()) return gpb_gpu_started();
    const bool no_thread = measured ? !gpb_ready_is_near() : is_blocked();      /* or one that gets nowhere */
    if (no_thread) return !gpb_linker_is_held() && gpb_gpu_start();
    if (!measured)
        gpb_log_warn("the GPU has not started in %.0f s; the host computes until it has",
                     GPB_PLAN_MAX_START_S);
    return false;
}

bool gpb_ready_is_near(void) { return atomic_load(&readiness) == GETTING_READY; }

double gpb_ready_start_s(bool active)
{
    const double known_s = gpb_history_start_s(active);
    return known_s > 0 ? known_s : active ? ACTIVE_START_S : gpb_gpu_start_s();
}

double gpb_ready_cost_s(bool active)
{
    const double known_s = gpb_history_lost_s(active);
    return (known_s > 0 ? known_s : active ? ACTIVE_LOST_S : LOST_S) + (active ? 0 : END_S);
}

/* If it takes longer than expected, it is assumed to take as long again as it is late, but at least a tenth
   of the expected time. */
double gpb_ready_left_s(bool active)
{
    if (!gpb_ready_is_near()) return gpb_gpu_started() ? 0 : gpb_ready_start_s(active);
    const double expected = atomic_load(&was_started) ? CALIBRATION_S : gpb_ready_start_s(active);
    const double taken = gpb_clock_s() - atomic_load(&begun_s);
    return max(expected - taken, max(taken - expected, expected / 10));
}
