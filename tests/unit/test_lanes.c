/* SPDX-License-Identifier: MIT */
/* Lanes and their memory, and the callers that wait for either (src/gpu/lanes.h): which gets it, and in
   what order. The clock is the test's own, and so is the driver, which does nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>

#include "src/service/clock.h"

static _Atomic int64_t now = INT64_C(1000000000);
static int64_t its_clock(void) { return now; }
#define gpb_clock_ns its_clock
#include "src/gpu/lanes.c"
#include "src/gpu/memory.c"

enum { CALLERS = 8 };

static gpb_device device = { .budget = INT64_C(1) << 30 };
static atomic_bool started = true;
static const gpb_facts here = { .device = 1 };

static CUresult make_stream(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = NULL;
    return CUDA_SUCCESS;
}
static CUresult make_event(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = NULL;
    return CUDA_SUCCESS;
}
static atomic_int refusals;               /* how many of the next allocations fail */
static CUresult allocate_some(CUdeviceptr *at, size_t bytes)
{
    *at = bytes;
    return refusals > 0 && refusals-- ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
static atomic_int freed;
/* To find out whether the lock is held while memory is freed. Nobody else takes it. */
static atomic_bool watched, locked;
static CUresult deallocate(CUdeviceptr at)
{
    (void)at;
    freed++;
    if (watched && pthread_mutex_trylock(&gpb_lanes.lock)) locked = true;
    else if (watched) pthread_mutex_unlock(&gpb_lanes.lock);
    return CUDA_SUCCESS;
}

const gpb_driver *gpb_driver_get(void)
{
    static const gpb_driver driver = { .cuStreamCreate = make_stream, .cuEventCreate = make_event,
                                       .cuMemAlloc = allocate_some,
                                       .cuMemFree = deallocate };
    return &driver;
}
void gpb_driver_capture_mode(CUstreamCaptureMode *mode) { (void)mode; }
bool gpb_gpu_started(void) { return started; }
bool gpb_gpu_leaving(void) { return false; }
static int begun;
int gpb_thread_begin(void *(*body)(void *), size_t stack)
{
    (void)body;
    (void)stack;
    begun++;
    return 0;
}
static atomic_bool same = true;
bool gpb_context_same(const gpb_device *of)
{
    (void)of;
    return same;
}
CUresult gpb_context_enter(gpb_device *of)
{
    (void)of;
    return CUDA_SUCCESS;
}
void gpb_context_exit(void) { }
void gpb_context_identify(gpb_device *of) { (void)of; }
void gpb_lanes_failed(const gpb_lane *lane, CUresult result) { (void)lane, (void)result; }
CUresult gpb_pinned_ready(gpb_pinned *pinned, CUdevice of, size_t bytes)
{
    static char memory[GPB_TABLE_BYTES + sizeof(uint32_t)] __attribute__((aligned(4096)));
    (void)of;
    (void)bytes;
    pinned->at = memory;
    return CUDA_SUCCESS;
}
void gpb_pinned_forget(gpb_pinned *pinned) { (void)pinned; }
void gpb_pinned_free(gpb_pinned *pinned) { (void)pinned; }
CUresult gpb_staging_ready(gpb_staging *staging, CUdevice of, size_t size)
{
    (void)staging;
    (void)of;
    (void)size;
    return CUDA_SUCCESS;
}
void gpb_staging_forget(gpb_staging *staging) { (void)staging; }
void gpb_staging_free(gpb_staging *staging) { (void)staging; }

/* ---- a caller in a thread of its own */

typedef struct caller {
    bool large, again;                       /* again: gives its lane back and takes one anew, at once */
    pthread_t thread;
    gpb_lane *lane;
    int place[2];                            /* how many were served before it */
    atomic_bool done;
} caller;

static atomic_int served;

static void *call(void *argument)
{
    caller *c = argument;
    for (int turn = 0; turn <= c->again; turn++) {
        c->lane = gpb_lanes_take(&here, c->large);
        c->place[turn] = served++;
        if (c->lane) gpb_lanes_give(c->lane);
    }
    c->done = true;
    return NULL;
}

static int waiting(void)
{
    int count = 0;
    pthread_mutex_lock(&gpb_lanes.lock);
    for (const waiter *w = queue; w; w = w->next) count++;
    pthread_mutex_unlock(&gpb_lanes.lock);
    return count;
}

/* Starts the caller. Returns when it waits. */
static void begin(caller *c)
{
    const int before = waiting();
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
    while (waiting() == before) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void end(caller *c) { assert_int_equal(pthread_join(c->thread, NULL), 0); }

/* ---- lanes */

/* Large calls wait for the first lane, and get it in the order in which they came. */
static void in_order(void **state)
{
    (void)state;
    caller callers[CALLERS] = { 0 };
    gpb_lane *mine = gpb_lanes_take(&here, true);
    assert_non_null(mine);
    served = 0;
    for (int i = 0; i < CALLERS; i++) {
        callers[i].large = true;
        begin(&callers[i]);
    }
    assert_int_equal(served, 0);
    gpb_lanes_give(mine);
    for (int i = 0; i < CALLERS; i++) end(&callers[i]);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].place[0], i);
        assert_ptr_equal(callers[i].lane, mine);
    }
}

/* A caller that gives a lane back and asks again comes after those that wait. */
static void again_is_last(void **state)
{
    (void)state;
    caller callers[3] = { { .large = true, .again = true },
                          { .large = true, .again = true },
                          { .large = true } };
    gpb_lane *mine = gpb_lanes_take(&here, true);
    served = 0;
    for (int i = 0; i < 3; i++) begin(&callers[i]);
    gpb_lanes_give(mine);
    for (int i = 0; i < 3; i++) end(&callers[i]);
    for (int i = 0; i < 3; i++) assert_int_equal(callers[i].place[0], i);
    for (int i = 0; i < 2; i++) assert_true(callers[i].place[1] > 2);
}

/* A small call waits for no large one. As many small ones run side by side as there are lanes; one more
   waits for whichever is free first. */
static void small_calls(void **state)
{
    (void)state;
    caller large = { .large = true }, small = { 0 };
    gpb_lane *mine = gpb_lanes_take(&here, true), *others[GPB_LANES - 1];
    served = 0;
    begin(&large);
    for (int i = 0; i < GPB_LANES - 1; i++) {
        others[i] = gpb_lanes_take(&here, false);
        assert_true(others[i] && others[i] != mine && !others[i]->alone);
        for (int j = 0; j < i; j++) assert_ptr_not_equal(others[i], others[j]);
    }
    begin(&small);
    assert_int_equal(served, 0);
    gpb_lanes_give(others[2]);
    end(&small);
    assert_ptr_equal(small.lane, others[2]);
    assert_false(large.done);
    gpb_lanes_give(mine);
    end(&large);
    assert_ptr_equal(large.lane, mine);
    for (int i = 0; i < GPB_LANES - 1; i++)
        if (i != 2) gpb_lanes_give(others[i]);
    mine = gpb_lanes_take(&here, false);
    assert_true(mine->alone);
    gpb_lanes_give(mine);
}

/* Nobody waits for a turn that takes too long: large calls may have two more lanes, but never the others. */
static void long_turns(void **state)
{
    (void)state;
    caller callers[3] = { { .large = true }, { .large = true }, { .large = true } };
    gpb_lane *mine = gpb_lanes_take(&here, true), *second, *third;
    now += GPB_TURN_NS;
    second = gpb_lanes_take(&here, true);
    third = gpb_lanes_take(&here, true);
    assert_true(second && third && second != mine && third != mine && third != second);
    served = 0;
    for (int i = 0; i < 3; i++) begin(&callers[i]);
    assert_int_equal(served, 0);
    gpb_lanes_give(second);
    for (int i = 0; i < 3; i++) end(&callers[i]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(callers[i].place[0], i);
        assert_ptr_equal(callers[i].lane, second);
    }
    gpb_lanes_give(mine);
    gpb_lanes_give(third);
}

/* When the GPU is given up, nobody waits any more. */
static void given_up(void **state)
{
    (void)state;
    caller callers[CALLERS] = { 0 };
    gpb_lane *mine = gpb_lanes_take(&here, true);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].large = true;
        begin(&callers[i]);
    }
    started = false;
    gpb_lanes_wake();
    for (int i = 0; i < CALLERS; i++) {
        end(&callers[i]);
        assert_null(callers[i].lane);
    }
    assert_null(gpb_lanes_take(&here, false));
    started = true;
    gpb_lanes_give(mine);
    mine = gpb_lanes_take(&here, true);
    assert_non_null(mine);
    gpb_lanes_give(mine);
}

/* ---- memory: MiB of a GiB */

enum { MIB = 1 << 20 };

static bool hold(gpb_lane *lane, int64_t mib) { return gpb_memory_arena(lane, mib * MIB); }

typedef struct wanter {
    int64_t mib;
    pthread_t thread;
    gpb_lane *lane;
    atomic_bool has, enough;                 /* has: it got the memory; enough: it may give it back */
} wanter;

static void *want(void *argument)
{
    wanter *w = argument;
    w->lane = gpb_lanes_take(&here, false);
    w->has = hold(w->lane, w->mib);
    while (!w->enough) sched_yield();
    gpb_lanes_give(w->lane);
    return NULL;
}

static int in_want(void)
{
    int count = 0;
    pthread_mutex_lock(&gpb_lanes.lock);
    for (int j = 0; j < GPB_LANES; j++) count += gpb_lanes.lanes[0][j].wanted > 0;
    pthread_mutex_unlock(&gpb_lanes.lock);
    return count;
}

static void begin_want(wanter *w)
{
    const int before = in_want();
    assert_int_equal(pthread_create(&w->thread, NULL, want, w), 0);
    while (in_want() == before) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Waits until it has got what it wants. */
static void gets(wanter *w) { while (!w->has) sched_yield(); }

static void end_want(wanter *w)
{
    w->enough = true;
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

static void forget_arenas(void)
{
    pthread_mutex_lock(&gpb_lanes.lock);
    make_room(&device, device.budget);
    pthread_mutex_unlock(&gpb_lanes.lock);
    assert_int_equal(device.held, 0);
}

/* A caller that wants much is not passed by one that would take the memory away, even if there is room for
   that now. Only one that leaves it enough passes. */
static void room_in_order(void **state)
{
    (void)state;
    wanter most = { .mib = 900 }, some = { .mib = 300 };
    gpb_lane *mine = gpb_lanes_take(&here, false), *little = gpb_lanes_take(&here, false);
    assert_true(hold(mine, 640));
    begin_want(&most);
    begin_want(&some);
    assert_true(hold(little, 90));
    assert_false(most.has || some.has);
    gpb_lanes_give(mine);
    gets(&most);
    assert_false(some.has);
    end_want(&most);
    gets(&some);
    end_want(&some);
    gpb_lanes_give(little);
    forget_arenas();
}

/* A call gives back what it finds in its lane and does not need, if another waits for it. Otherwise a lane
   that is handed on at once would never be idle. */
static void room_in_lanes(void **state)
{
    (void)state;
    wanter most = { .mib = 1000 };
    gpb_lane *mine = gpb_lanes_take(&here, false);
    assert_true(hold(mine, 640) && hold(mine, 10) && mine->arena.bytes >= 640 * (int64_t)MIB);
    begin_want(&most);
    assert_true(hold(mine, 10));
    gets(&most);
    assert_true(mine->arena.bytes < 32 * (int64_t)MIB);
    end_want(&most);
    gpb_lanes_give(mine);
    forget_arenas();
}

static atomic_bool enough;

static void *again_and_again(void *argument)
{
    while (!enough) {
        gpb_lane *lane = gpb_lanes_take(&here, false);
        assert_true(hold(lane, 200));
        sched_yield();
        gpb_lanes_give(lane);
    }
    return argument;
}

/* Any number of callers keep nobody waiting for ever, whether that one wants all of the memory or as
   little as they do. */
static void room_for_all(void **state)
{
    (void)state;
    pthread_t threads[2 * GPB_LANES];
    for (int i = 0; i < 2 * GPB_LANES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, again_and_again, NULL), 0);
    for (int i = 0; i < 200; i++) {
        gpb_lane *lane = gpb_lanes_take(&here, i % 3 == 0);
        assert_true(hold(lane, i % 2 ? 1024 : 100));
        gpb_lanes_give(lane);
    }
    enough = true;
    for (int i = 0; i < 2 * GPB_LANES; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    forget_arenas();
}

/* More than there is, or more than the driver gives: no memory. Before that, idle lanes give theirs up. */
static void no_room(void **state)
{
    (void)state;
    gpb_lane *mine = gpb_lanes_take(&here, false), *other = gpb_lanes_take(&here, false);
    assert_false(hold(mine, 1025));
    assert_true(hold(other, 100));
    watched = true;
    refusals = 2;
    assert_false(hold(mine, 200));       /* the other lane is busy, so there is nothing to give up */
    assert_int_equal(refusals, 1);
    gpb_lanes_give(other);
    assert_true(hold(mine, 200));
    assert_int_equal(other->arena.bytes, 0);
    assert_int_equal(device.held, mine->arena.bytes);
    assert_false(locked);                /* cuMemFree may wait for the program's kernels */
    watched = false;
    gpb_lanes_give(mine);
    forget_arenas();
}

/* When the GPU is given up, nobody waits for memory either. */
static void given_up_room(void **state)
{
    (void)state;
    gpb_lane *mine = gpb_lanes_take(&here, false);
    wanter late = { .mib = 800 };
    assert_true(hold(mine, 640));
    begin_want(&late);
    started = false;
    gpb_lanes_wake();
    end_want(&late);
    assert_false(late.has);
    started = true;
    gpb_lanes_give(mine);
    forget_arenas();
}

/* The program has reset the device. What an idle lane had is forgotten at once, what a busy one has when
   it is given back. None of it is freed, because its address may be another's by now. */
static void reset(void **state)
{
    (void)state;
    gpb_lane *idle = gpb_lanes_take(&here, false), *busy = gpb_lanes_take(&here, false);
    assert_true(hold(idle, 100) && hold(busy, 100));
    gpb_lanes_give(idle);
    const int before = freed;
    same = false;
    gpb_lanes_forget(&device);
    assert_true(!idle->ready && !idle->arena.at && busy->ready && busy->arena.at
                && device.held == busy->arena.bytes);
    same = true;
    gpb_lanes_give(busy);
    assert_true(!busy->ready && !busy->arena.at && device.held == 0 && freed == before);
    busy = gpb_lanes_take(&here, false);
    assert_true(busy->ready && busy->life == device.life && hold(busy, 100));
    gpb_lanes_give(busy);
    forget_arenas();
}

/* Memory that no call has used for two seconds goes back, but not that of a busy lane. One thread does it,
   as long as there is such memory. */
static void idle_memory(void **state)
{
    (void)state;
    const int64_t second = INT64_C(1000000000);
    now += 10 * second;
    (void)sweep();                                    /* what the tests before have left to be done */
    begun = 0;
    gpb_lane *early = gpb_lanes_take(&here, false), *late = gpb_lanes_take(&here, false),
             *busy = gpb_lanes_take(&here, false);
    assert_true(hold(early, 100) && hold(late, 200) && hold(busy, 50));
    gpb_lanes_give(early);
    now += second;
    gpb_lanes_give(late);
    assert_int_equal(begun, 1);
    assert_int_equal(sweep(), second);
    assert_true(early->arena.at && late->arena.at);
    now += second;
    const int before = freed;
    assert_int_equal(sweep(), second);
    assert_true(!early->arena.at && early->arena.bytes == 0 && late->arena.at && busy->arena.at
                && freed == before + 1);
    assert_int_equal(device.held, late->arena.bytes + busy->arena.bytes);
    now += second;
    /* Nothing is idle now, so the thread ends. The next caller to give a lane back starts another. */
    assert_int_equal(sweep(), 0);
    assert_true(!late->arena.at && busy->arena.at && device.held == busy->arena.bytes);
    gpb_lanes_give(busy);
    assert_int_equal(begun, 2);
    now += 3 * second;
    assert_int_equal(sweep(), 0);
    assert_int_equal(device.held, 0);
}

/* Factors on a lane are found by what they are, while the lane is idle, on the operands' own device. They
   stay while calls need no more than what lies before them. */
static void kept_factors(void **state)
{
    (void)state;
    static const char matrix[1];
    const gpb_kept factors = { .matrix = matrix, .n = 100, .ld = 101, .type = GPB_TYPE_d, .uplo = 'G' };
    const gpb_facts nowhere = { 0 }, other_device = { .device = 2 };
    gpb_lane *lane = gpb_lanes_take(&here, true);
    assert_true(hold(lane, 100));
    lane->kept = factors;
    lane->arena.kept = lane->arena.bytes / 2;
    assert_null(gpb_lanes_take_kept(&here, &factors));
    gpb_lanes_give(lane);
    gpb_kept others[] = { factors, factors, factors, factors, factors };
    others[0].matrix = matrix + 1;
    others[1].n--;
    others[2].ld++;
    others[3].type = GPB_TYPE_z;
    others[4].uplo = 'L';
    for (int i = 0; i < 5; i++) assert_null(gpb_lanes_take_kept(&here, &others[i]));
    assert_null(gpb_lanes_take_kept(&other_device, &factors));
    const gpb_facts *both[] = { &here, &nowhere };
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(gpb_lanes_take_kept(both[i], &factors), lane);
        assert_true(gpb_memory_arena(lane, lane->arena.kept));
        gpb_lanes_give(lane);
    }
    assert_ptr_equal(gpb_lanes_take(&here, true), lane);
    assert_true(gpb_memory_arena(lane, lane->arena.kept + 1));
    gpb_lanes_give(lane);
    assert_null(gpb_lanes_take_kept(&here, &factors));
    forget_arenas();
}

int main(void)
{
    gpb_lanes_make(&device, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order), cmocka_unit_test(again_is_last), cmocka_unit_test(small_calls),
        cmocka_unit_test(long_turns), cmocka_unit_test(given_up), cmocka_unit_test(room_in_order),
        cmocka_unit_test(room_in_lanes), cmocka_unit_test(room_for_all), cmocka_unit_test(no_room),
        cmocka_unit_test(given_up_room), cmocka_unit_test(reset), cmocka_unit_test(idle_memory),
        cmocka_unit_test(kept_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
