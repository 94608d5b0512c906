/* SPDX-License-Identifier: MIT */
/* Lanes; see lanes.h. */
#include "src/gpu/lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/memory.h"
#include "src/service/clock.h"
#include "src/service/option.h"

gpb_lane_pool gpb_lanes = { .lock = PTHREAD_MUTEX_INITIALIZER, .more_room = PTHREAD_COND_INITIALIZER };
static unsigned turn;
static const gpb_driver *driver;

void gpb_lanes_make(gpb_device *first, int count)
{
    driver = gpb_driver_get();
    gpb_lanes.devices = first;
    gpb_lanes.device_count = count;
    for (int i = 0; i < count; i++) {
        gpb_context_identify(&gpb_lanes.devices[i]);
        for (int j = 0; j < GPB_LANES; j++) gpb_lanes.lanes[i][j].device = &gpb_lanes.devices[i];
    }
}

/* ---- lanes */

static CUresult ready_events(CUevent *events, int count)
{
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < count && !result; i++)
        if (!events[i]) result = driver->cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING);
    return result;
}

static CUresult ready_ring(gpb_staging **staging, CUdevice device, size_t bytes)
{
    if (!*staging) *staging = calloc(1, sizeof **staging);
    return *staging ? gpb_staging_ready(*staging, device, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The address table, and behind it, in a page of its own, the word. */
static CUresult ready_words(gpb_lane *lane)
{
    CUresult result = gpb_pinned_ready(&lane->words, lane->device->handle,
                                       GPB_TABLE_BYTES + sizeof *lane->flagged);
    lane->table = lane->words.at;
    lane->flagged = result ? NULL : (uint32_t *)(void *)(lane->table + GPB_TABLE_BYTES);
    return result;
}

static int number_of(const gpb_lane *lane)
{
    return (int)(lane - gpb_lanes.lanes[lane->device - gpb_lanes.devices]);
}

/* Makes what the lane owns at its first use; it is kept from then on. The lane's context is current. */
static CUresult ready_lane(gpb_lane *lane)
{
    CUresult result = CUDA_SUCCESS;
    if (lane->ready) return result;
    lane->life = lane->device->life;
    lane->made_in = gpb_driver_context(driver);
    if (!lane->stream) result = driver->cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING);
    if (!result) result = ready_events(&lane->after, 1);
    if (!result) result = ready_events(lane->arrived, GPB_TILE_EVENTS);
    if (!result) result = ready_events(lane->tile, GPB_TILE_EVENTS);
    if (!result) result = ready_events(lane->freed[0], 4);
    if (!result) result = ready_events(lane->home, 2);
    if (!result) result = ready_words(lane);
    if (!result)
        result = ready_ring(&lane->up, lane->device->handle, number_of(lane) ? GPB_UP_RING : GPB_FIRST_RING);
    if (!result)
        result = ready_ring(&lane->down, lane->device->handle,
                            number_of(lane) ? GPB_DOWN_RING : GPB_FIRST_RING);
    lane->ready = !result;
    return result;
}

/* Under the lock. The device was reset. Nothing is freed, because it is gone and its handles and addresses
   may belong to others by now. */
static void forget(gpb_lane *lane)
{
    lane->stream = NULL;
    lane->after = NULL;
    memset(lane->arrived, 0, sizeof lane->arrived);
    memset(lane->tile, 0, sizeof lane->tile);
    memset(lane->freed, 0, sizeof lane->freed);
    memset(lane->home, 0, sizeof lane->home);
    gpb_pinned_forget(&lane->words);
    if (lane->up) gpb_staging_forget(lane->up);
    if (lane->down) gpb_staging_forget(lane->down);
    gpb_spans_forget(lane->spans);
    lane->device->held -= lane->arena.bytes;
    lane->arena = (gpb_block){ 0 };
    lane->counters = 0;
    lane->ready = false;
    lane->life = lane->device->life;
}

void gpb_lanes_forget(gpb_device *device)
{
    gpb_lane *of = gpb_lanes.lanes[device - gpb_lanes.devices];
    pthread_mutex_lock(&gpb_lanes.lock);
    device->life++;
    for (int j = 0; j < GPB_LANES; j++)
        if (!of[j].busy) forget(&of[j]);
    pthread_cond_broadcast(&gpb_lanes.more_room);
    pthread_mutex_unlock(&gpb_lanes.lock);
}

/* Makes the lane's context current, and what the lane owns belong to it. */
static CUresult enter_lane(gpb_lane *lane)
{
    CUresult result = gpb_context_enter(lane->device);
    if (result) return result;
    if (lane->life != lane->device->life) {
        pthread_mutex_lock(&gpb_lanes.lock);
        forget(lane);
        pthread_mutex_unlock(&gpb_lanes.lock);
    }
    result = ready_lane(lane);
    if (result) gpb_context_exit();
    return result;
}

/* For a small call, of two idle lanes: prefer the one that large calls cannot take, then the one with more
   memory. */
static bool is_better(const gpb_lane *higher, const gpb_lane *lower)
{
    const bool kept = number_of(lower) < GPB_LARGE_LANES && number_of(higher) >= GPB_LARGE_LANES;
    return kept || higher->arena.bytes > lower->arena.bytes;
}

/* Under the lock, among one device's lanes. */
static gpb_lane *idle_lane(gpb_lane *of, bool large)
{
    gpb_lane *best = NULL;
    const bool turns = large && of->busy && gpb_clock_ns() - of->since_ns < GPB_TURN_NS;
    for (int j = 0; j < (large ? GPB_LARGE_LANES : GPB_LANES) && !turns; j++)
        if (!of[j].busy && (!best || (!large && is_better(&of[j], best)))) best = &of[j];
    return best;
}

/* Under the lock: an idle lane of that device, or (device < 0) of the next device in turn that has one. */
static gpb_lane *find_lane(int device, bool large)
{
    gpb_lane *lane = NULL;
    const int from = device >= 0 ? device : (int)(turn % (unsigned)gpb_lanes.device_count),
              many = device >= 0 ? 1 : gpb_lanes.device_count;
    for (int i = 0; i < many && !lane; i++)
        lane = idle_lane(gpb_lanes.lanes[(from + i) % gpb_lanes.device_count], large);
    return lane;
}

/* Under the lock. */
static bool is_alone(const gpb_lane *lane)
{
    const gpb_lane *of = gpb_lanes.lanes[lane->device - gpb_lanes.devices];
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy) return false;
    return true;
}

/* Under the lock: marks the lane as taken, for the caller or for the waiter that it is handed to. Passes NULL
   on. */
static gpb_lane *occupy(gpb_lane *lane)
{
    if (!lane) return NULL;
    lane->since_ns = gpb_clock_ns();
    lane->alone = is_alone(lane);
    lane->busy = true;
    turn++;
    return lane;
}

/* ---- waiters, in the order in which they came; under the lock. A lane is handed over directly: a thread
   that gives one back and calls again comes last, and only one thread is woken. */

typedef struct waiter {
    struct waiter *next;
    pthread_cond_t wake;
    int device;
    bool large;
    gpb_lane *lane;                          /* NULL until a lane is handed over; from then on the waiter is
                                                no longer in the queue */
} waiter;

static waiter *queue;

/* The first waiter with a large call. It watches the clock for the others. */
static waiter *next_large(void)
{
    waiter *w = queue;
    while (w && !w->large) w = w->next;
    return w;
}

static void hand_out(void)
{
    const waiter *before = next_large();
    for (waiter **at = &queue; *at;) {
        waiter *w = *at;
        gpb_lane *lane = occupy(find_lane(w->device, w->large));
        if (!lane) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->lane = lane;
        pthread_cond_signal(&w->wake);
    }
    waiter *now = next_large();
    if (now && now != before) pthread_cond_signal(&now->wake);
}

/* Sleeps until a turn may be over. */
static void wait_one_turn(waiter *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GPB_TURN_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&w->wake, &gpb_lanes.lock, &until);
    hand_out();
}

/* Under the lock. When the program ends, libcuda takes down whatever is on the GPU, so from then on only
   calls that the host cannot compute begin. The lock matters: gpb_lanes_idle must not run between this check
   and the taking of a lane. */
static bool may_begin(const gpb_facts *facts)
{
    return gpb_gpu_started() && (!gpb_gpu_leaving() || gpb_facts_on_gpu(facts));
}

/* The waiter is not on the stack, because a signal handler may leave that stack by longjmp, and the queue
   would then hand a lane to memory that is gone. */
static gpb_lane *wait_for_lane(const gpb_facts *facts, bool large)
{
    waiter *me = calloc(1, sizeof *me), **end = &queue;
    if (!me) return NULL;
    pthread_cond_init(&me->wake, NULL);
    me->device = facts->device - 1;
    me->large = large;
    while (*end) end = &(*end)->next;
    *end = me;
    while (!me->lane && may_begin(facts)) {
        if (next_large() == me) wait_one_turn(me);
        else pthread_cond_wait(&me->wake, &gpb_lanes.lock);
    }
    gpb_lane *lane = me->lane;
    for (waiter **at = &queue; *at && !lane; at = &(*at)->next)
        if (*at == me) {
            *at = me->next;
            break;
        }
    pthread_cond_destroy(&me->wake);
    free(me);
    return lane;
}

bool gpb_lanes_block(const gpb_device *device, int number, gpb_block **idle)
{
    if (number >= GPB_LANES) return false;
    gpb_lane *lane = &gpb_lanes.lanes[device - gpb_lanes.devices][number];
    *idle = lane->busy || !lane->arena.at ? NULL : &lane->arena;
    return true;
}

void gpb_lanes_wake(void)
{
    pthread_mutex_lock(&gpb_lanes.lock);
    for (waiter *w = queue; w; w = w->next) pthread_cond_signal(&w->wake);
    pthread_cond_broadcast(&gpb_lanes.more_room);
    pthread_mutex_unlock(&gpb_lanes.lock);
}

bool gpb_lanes_idle(void)
{
    if (pthread_mutex_trylock(&gpb_lanes.lock)) return false;
    bool idle = !gpb_lanes.freeing;
    for (int i = 0; i < gpb_lanes.device_count; i++)
        for (int j = 0; j < GPB_LANES; j++) idle &= !gpb_lanes.lanes[i][j].busy;
    pthread_mutex_unlock(&gpb_lanes.lock);
    return idle;
}

static void release(gpb_lane *lane)
{
    pthread_mutex_lock(&gpb_lanes.lock);
    if (lane->life != lane->device->life) forget(lane);
    lane->busy = false;
    lane->arena.until_ns = gpb_clock_ns();
    const bool first = lane->arena.at && !gpb_lanes.sweeping;
    gpb_lanes.sweeping |= first;
    hand_out();
    pthread_cond_broadcast(&gpb_lanes.more_room);
    pthread_mutex_unlock(&gpb_lanes.lock);
    if (first) gpb_memory_sweep();
}

static void trace(gpb_lane *lane)
{
    const gpb_spans_lane of = { .device = (int)(lane->device - gpb_lanes.devices), .number = number_of(lane),
                                .made_in = lane->made_in, .kernels = lane->stream, .up = lane->up->own,
                                .down = lane->down->own };
    gpb_spans_begin(&lane->spans, &of);
}

/* NULL, or the lane that the caller has occupied, with its context current. */
static gpb_lane *enter(gpb_lane *lane)
{
    if (!lane) return NULL;
    CUresult result = enter_lane(lane);
    if (!result && gpb_option_traces()) trace(lane);
    if (!result) return lane;
    gpb_lanes_failed(lane, result);
    release(lane);
    return NULL;
}

gpb_lane *gpb_lanes_take(const gpb_facts *facts, bool large)
{
    gpb_lane *lane = NULL;
    pthread_mutex_lock(&gpb_lanes.lock);
    if (may_begin(facts) && !(lane = occupy(find_lane(facts->device - 1, large))))
        lane = wait_for_lane(facts, large);
    if (lane) lane->must = gpb_facts_on_gpu(facts);
    pthread_mutex_unlock(&gpb_lanes.lock);
    return enter(lane);
}

/* Under the lock. */
static bool has_kept(const gpb_lane *lane, const gpb_kept *kept)
{
    const gpb_kept *has = &lane->kept;
    return lane->arena.kept && has->matrix == kept->matrix && has->n == kept->n && has->ld == kept->ld
           && has->type == kept->type && has->uplo == kept->uplo;
}

gpb_lane *gpb_lanes_take_kept(const gpb_facts *facts, const gpb_kept *kept)
{
    gpb_lane *lane = NULL;
    pthread_mutex_lock(&gpb_lanes.lock);
    for (int i = 0; i < gpb_lanes.device_count * GPB_LANES && !lane && may_begin(facts); i++) {
        gpb_lane *of = &gpb_lanes.lanes[i / GPB_LANES][i % GPB_LANES];
        const bool elsewhere = facts->device && facts->device - 1 != i / GPB_LANES;
        if (!elsewhere && !of->busy && has_kept(of, kept)) lane = occupy(of);
    }
    if (lane) lane->must = gpb_facts_on_gpu(facts);
    pthread_mutex_unlock(&gpb_lanes.lock);
    return enter(lane);
}

void gpb_lanes_give(gpb_lane *lane)
{
    gpb_spans_end();
    gpb_context_exit();
    release(lane);
}

void gpb_lanes_prepare(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    for (int i = 0; i < gpb_lanes.device_count; i++) {
        gpb_lane *lane = gpb_lanes_take(&(gpb_facts){ .device = i + 1 }, true);
        if (lane) gpb_lanes_give(lane);
    }
    gpb_driver_capture_mode(&mode);
}

/* ---- the end: a context goes with all that is in it, unless the program uses it as well */

static void let_lane_go(gpb_lane *lane)
{
    if (lane->arena.at) driver->cuMemFree(lane->arena.at);
    gpb_pinned_free(&lane->words);
    if (lane->up) gpb_staging_free(lane->up);
    if (lane->down) gpb_staging_free(lane->down);
    lane->arena = (gpb_block){ 0 };
    lane->ready = false;
}

static void set_freeing(bool now)
{
    pthread_mutex_lock(&gpb_lanes.lock);
    gpb_lanes.freeing = now;
    pthread_mutex_unlock(&gpb_lanes.lock);
}

void gpb_lanes_let_go(void)
{
    CUcontext popped;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    set_freeing(true);
    for (int i = 0; i < gpb_lanes.device_count; i++) {
        const bool entered = !driver->cuCtxPushCurrent(gpb_lanes.devices[i].context);
        for (int j = 0; j < GPB_LANES && entered; j++) let_lane_go(&gpb_lanes.lanes[i][j]);
        if (entered) driver->cuCtxPopCurrent(&popped);
        driver->cuDevicePrimaryCtxRelease(gpb_lanes.devices[i].handle);
    }
    set_freeing(false);
}
