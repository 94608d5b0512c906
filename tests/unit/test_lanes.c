/* SPDX-License-Identifier: MIT */
/* Lanes and those who wait for them (src/gpu_state.h): who gets one, in what order. By a clock of the test's own; the driver, too, is this
   file's, and does nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "src/clock.h"

static _Atomic int64_t now = INT64_C(1000000000);
static int64_t its_clock(void) { return now; }
#define gpb_clock_ns its_clock
#include "src/gpu_state.c"

enum { CALLERS = 8 };

static gpb_device device = { .budget = INT64_C(1) << 30 };
static atomic_bool started = true;
static const gpb_facts here = { .device = 1 };

static CUresult enter(CUcontext context) { return (void)context, CUDA_SUCCESS; }
static CUresult leave(CUcontext *context) { return *context = NULL, CUDA_SUCCESS; }
static CUresult make_stream(CUstream *stream, unsigned flags) { return (void)flags, *stream = NULL, CUDA_SUCCESS; }
static CUresult make_event(CUevent *event, unsigned flags) { return (void)flags, *event = NULL, CUDA_SUCCESS; }
static CUresult pin(void **memory, size_t bytes, unsigned flags) { return (void)bytes, (void)flags, *memory = NULL, CUDA_SUCCESS; }

const gpb_driver *gpb_driver_open(const char **why)
{
    static const gpb_driver driver = { .cuCtxPushCurrent = enter, .cuCtxPopCurrent = leave, .cuStreamCreate = make_stream,
                                       .cuEventCreate = make_event, .cuMemHostAlloc = pin };
    (void)why;
    return &driver;
}
const char *gpb_driver_error(CUresult result) { return result ? "an error" : "none"; }
void gpb_driver_capture_mode(CUstreamCaptureMode *mode) { (void)mode; }
bool gpb_gpu_started(void) { return started; }
void gpb_gpu_give_up(const char *why) { (void)why; }
CUresult gpb_belt_ready(gpb_belt *belt, const gpb_driver *driver, size_t size)
{
    return (void)belt, (void)driver, (void)size, CUDA_SUCCESS;
}

/* ---- a caller in a thread of its own */

typedef struct caller {
    bool large, again;                       /* again: gives its lane back and takes one anew, at once */
    pthread_t thread;
    gpb_lane *lane;
    int place[2];                            /* who was served before it: so many */
    atomic_bool done;
} caller;

static atomic_int served;

static void *call(void *argument)
{
    caller *c = argument;
    for (int turn = 0; turn <= c->again; turn++) {
        c->lane = gpb_gpu_take(&here, c->large);
        c->place[turn] = served++;
        if (c->lane) gpb_gpu_give(c->lane);
    }
    c->done = true;
    return NULL;
}

static int waiting(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const waiter *w = queue; w; w = w->next) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Starts it, and returns when it waits. */
static void begin(caller *c)
{
    const int before = waiting();
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
    while (waiting() == before) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void end(caller *c) { assert_int_equal(pthread_join(c->thread, NULL), 0); }

/* ---- */

/* Large calls wait for the first lane, and get it in the order in which they came. */
static void in_order(void **state)
{
    (void)state;
    caller callers[CALLERS] = { 0 };
    gpb_lane *mine = gpb_gpu_take(&here, true);
    assert_non_null(mine);
    served = 0;
    for (int i = 0; i < CALLERS; i++) callers[i].large = true, begin(&callers[i]);
    assert_int_equal(served, 0);
    gpb_gpu_give(mine);
    for (int i = 0; i < CALLERS; i++) end(&callers[i]);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].place[0], i);
        assert_ptr_equal(callers[i].lane, mine);
    }
}

/* Whoever gives a lane back and asks again comes after those who wait. */
static void again_is_last(void **state)
{
    (void)state;
    caller callers[3] = { { .large = true, .again = true }, { .large = true, .again = true }, { .large = true } };
    gpb_lane *mine = gpb_gpu_take(&here, true);
    served = 0;
    for (int i = 0; i < 3; i++) begin(&callers[i]);
    gpb_gpu_give(mine);
    for (int i = 0; i < 3; i++) end(&callers[i]);
    for (int i = 0; i < 3; i++) assert_int_equal(callers[i].place[0], i);
    for (int i = 0; i < 2; i++) assert_true(callers[i].place[1] > 2);
}

/* A small call waits for no large one; as many small ones as there are lanes go side by side, and one more waits for whichever is first. */
static void small_calls(void **state)
{
    (void)state;
    caller large = { .large = true }, small = { 0 };
    gpb_lane *mine = gpb_gpu_take(&here, true), *others[GPB_LANES - 1];
    served = 0;
    begin(&large);
    for (int i = 0; i < GPB_LANES - 1; i++) {
        others[i] = gpb_gpu_take(&here, false);
        assert_true(others[i] && others[i] != mine && !others[i]->alone);
        for (int j = 0; j < i; j++) assert_ptr_not_equal(others[i], others[j]);
    }
    begin(&small);
    assert_int_equal(served, 0);
    gpb_gpu_give(others[2]);
    end(&small);
    assert_ptr_equal(small.lane, others[2]);
    assert_false(large.done);
    gpb_gpu_give(mine);
    end(&large);
    assert_ptr_equal(large.lane, mine);
    for (int i = 0; i < GPB_LANES - 1; i++)
        if (i != 2) gpb_gpu_give(others[i]);
    mine = gpb_gpu_take(&here, false);
    assert_true(mine->alone);
    gpb_gpu_give(mine);
}

/* A turn that takes too long is not waited for: two more lanes are for large calls, the others never. */
static void long_turns(void **state)
{
    (void)state;
    caller callers[3] = { { .large = true }, { .large = true }, { .large = true } };
    gpb_lane *mine = gpb_gpu_take(&here, true), *second, *third;
    now += GPB_TURN_NS;
    second = gpb_gpu_take(&here, true), third = gpb_gpu_take(&here, true);
    assert_true(second && third && second != mine && third != mine && third != second);
    served = 0;
    for (int i = 0; i < 3; i++) begin(&callers[i]);
    assert_int_equal(served, 0);
    gpb_gpu_give(second);
    for (int i = 0; i < 3; i++) end(&callers[i]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(callers[i].place[0], i);
        assert_ptr_equal(callers[i].lane, second);
    }
    gpb_gpu_give(mine), gpb_gpu_give(third);
}

/* When the GPU is given up, nobody waits any more. */
static void given_up(void **state)
{
    (void)state;
    caller callers[CALLERS] = { 0 };
    gpb_lane *mine = gpb_gpu_take(&here, true);
    for (int i = 0; i < CALLERS; i++) callers[i].large = true, begin(&callers[i]);
    started = false;
    gpb_gpu_wake();
    for (int i = 0; i < CALLERS; i++) {
        end(&callers[i]);
        assert_null(callers[i].lane);
    }
    assert_null(gpb_gpu_take(&here, false));
    started = true;
    gpb_gpu_give(mine);
    mine = gpb_gpu_take(&here, true);
    assert_non_null(mine);
    gpb_gpu_give(mine);
}

int main(void)
{
    gpb_gpu_lanes(&device, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order), cmocka_unit_test(again_is_last), cmocka_unit_test(small_calls), cmocka_unit_test(long_turns),
        cmocka_unit_test(given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
