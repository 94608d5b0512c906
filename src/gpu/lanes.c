/* SPDX-License-Identifier: MIT */
/* Lanes: who computes with what. One lock guards what lanes share (who is busy, who holds how much); nothing slow happens under it. */
#include "src/gpu/lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/gemm_args.h"
#include "src/service/clock.h"
#include "src/service/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more_room = PTHREAD_COND_INITIALIZER;
static gpb_device *devices;
static int device_count;
static gpb_lane lanes[GPB_DEVICES][GPB_LANES];
static unsigned turn;
static const gpb_driver *driver;

void gpb_gpu_lanes(gpb_device *first, int count)
{
    driver = gpb_driver_open(NULL);
    devices = first, device_count = count;
    for (int i = 0; i < count; i++) {
        gpb_gpu_identify(&devices[i]);
        for (int j = 0; j < GPB_LANES; j++) lanes[i][j].device = &devices[i];
    }
}

bool gpb_gpu_sticky(CUresult result)
{
    switch ((int)result) {
    case CUDA_ERROR_DEINITIALIZED: case CUDA_ERROR_ECC_UNCORRECTABLE: case CUDA_ERROR_ILLEGAL_ADDRESS: case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT: case CUDA_ERROR_HARDWARE_STACK_ERROR: case CUDA_ERROR_ILLEGAL_INSTRUCTION: case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE: case CUDA_ERROR_INVALID_PC: case CUDA_ERROR_LAUNCH_FAILED: case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE: case CUDA_ERROR_NO_DEVICE: case CUDA_ERROR_NOT_INITIALIZED: case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
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

static CUresult ready_belt(gpb_belt **belt, CUdevice device, size_t bytes)
{
    if (!*belt) *belt = calloc(1, sizeof **belt);
    return *belt ? gpb_belt_ready(*belt, device, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The table, and behind it, in a page of its own, the word. */
static CUresult ready_words(gpb_lane *lane)
{
    CUresult result = gpb_pinned_ready(&lane->words, lane->device->handle, GPB_TABLE_BYTES + sizeof *lane->notice);
    lane->table = lane->words.at;
    lane->notice = result ? NULL : (uint32_t *)(void *)(lane->table + GPB_TABLE_BYTES);
    return result;
}

static int number_of(const gpb_lane *lane) { return (int)(lane - lanes[lane->device - devices]); }

/* What a lane owns is made at its first use and kept; its context is current. */
static CUresult ready_lane(gpb_lane *lane)
{
    CUresult result = CUDA_SUCCESS;
    if (lane->ready) return result;
    lane->life = lane->device->life, lane->made_in = gpb_driver_context(driver);
    if (!lane->stream) result = driver->cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING);
    if (!result) result = ready_events(&lane->after, 1);
    if (!result) result = ready_events(lane->arrived, GPB_TILE_EVENTS);
    if (!result) result = ready_events(lane->tile, GPB_TILE_EVENTS);
    if (!result) result = ready_events(lane->freed[0], 4);
    if (!result) result = ready_events(lane->home, 2);
    if (!result) result = ready_words(lane);
    if (!result) result = ready_belt(&lane->up, lane->device->handle, number_of(lane) ? GPB_UP_RING : GPB_FIRST_RING);
    if (!result) result = ready_belt(&lane->down, lane->device->handle, number_of(lane) ? GPB_DOWN_RING : GPB_FIRST_RING);
    lane->ready = !result;
    return result;
}

/* Under the lock. The device was reset: nothing is given back, for it is gone, and its handles and addresses may be another's by now. */
static void forget(gpb_lane *lane)
{
    lane->stream = NULL, lane->after = NULL;
    memset(lane->arrived, 0, sizeof lane->arrived), memset(lane->tile, 0, sizeof lane->tile);
    memset(lane->freed, 0, sizeof lane->freed), memset(lane->home, 0, sizeof lane->home);
    gpb_pinned_forget(&lane->words);
    if (lane->up) gpb_belt_forget(lane->up);
    if (lane->down) gpb_belt_forget(lane->down);
    lane->device->held -= lane->arena_bytes;
    lane->arena = lane->counters = 0, lane->arena_bytes = 0;
    lane->ready = false, lane->life = lane->device->life;
}

void gpb_gpu_forget_lanes(gpb_device *device)
{
    gpb_lane *of = lanes[device - devices];
    pthread_mutex_lock(&lock);
    device->life++;
    for (int j = 0; j < GPB_LANES; j++)
        if (!of[j].busy) forget(&of[j]);
    pthread_cond_broadcast(&more_room);
    pthread_mutex_unlock(&lock);
}

/* The lane's context is current, and what the lane has is of that context. */
static CUresult enter_lane(gpb_lane *lane)
{
    CUresult result = gpb_gpu_enter(lane->device);
    if (result) return result;
    if (lane->life != lane->device->life) {
        pthread_mutex_lock(&lock);
        forget(lane);
        pthread_mutex_unlock(&lock);
    }
    result = ready_lane(lane);
    if (result) gpb_gpu_exit();
    return result;
}

/* Of two idle lanes, for a small call: one that large calls cannot have, then one that has the more memory already. */
static bool is_better(const gpb_lane *higher, const gpb_lane *lower)
{
    const bool kept = number_of(lower) < GPB_LARGE_LANES && number_of(higher) >= GPB_LARGE_LANES;
    return kept || higher->arena_bytes > lower->arena_bytes;
}

/* Under the lock, of one device. */
static gpb_lane *idle_lane(gpb_lane *of, bool large)
{
    gpb_lane *best = NULL;
    const bool turns = large && of->busy && gpb_clock_ns() - of->since_ns < GPB_TURN_NS;
    for (int j = 0; j < (large ? GPB_LARGE_LANES : GPB_LANES) && !turns; j++)
        if (!of[j].busy && (!best || (!large && is_better(&of[j], best)))) best = &of[j];
    return best;
}

/* Under the lock: on that device, or, < 0, on the next in turn that has one. */
static gpb_lane *find_lane(int device, bool large)
{
    gpb_lane *lane = NULL;
    const int from = device >= 0 ? device : (int)(turn % (unsigned)device_count), many = device >= 0 ? 1 : device_count;
    for (int i = 0; i < many && !lane; i++) lane = idle_lane(lanes[(from + i) % device_count], large);
    return lane;
}

/* Under the lock. */
static bool is_alone(const gpb_lane *lane)
{
    const gpb_lane *of = lanes[lane->device - devices];
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy) return false;
    return true;
}

/* Under the lock: the lane is the caller's, or that of the waiter it is handed to. NULL: there was none. */
static gpb_lane *occupy(gpb_lane *lane)
{
    if (!lane) return NULL;
    lane->since_ns = gpb_clock_ns();
    lane->alone = is_alone(lane);
    lane->busy = true;
    turn++;
    return lane;
}

/* ---- those who wait, in the order in which they came; under the lock. A lane goes from hand to hand: whoever gives one back and calls again
   comes last, and only one is woken. */

typedef struct waiter {
    struct waiter *next;
    pthread_cond_t look;
    int device;
    bool large;
    gpb_lane *lane;                          /* NULL until one is handed over; then no longer in the queue */
} waiter;

static waiter *queue;

/* Of the large ones, who minds the clock. */
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
        pthread_cond_signal(&w->look);
    }
    waiter *now = next_large();
    if (now && now != before) pthread_cond_signal(&now->look);
}

/* Until somebody's turn may be over. */
static void doze(waiter *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GPB_TURN_NS;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_cond_timedwait(&w->look, &lock, &until);
    hand_out();
}

/* When the program ends, libcuda goes with whatever is on the GPU: only what the host cannot compute is begun from then on. Under the lock, or
   gpb_gpu_idle could come between the question and the taking. */
static bool may_begin(const gpb_facts *facts) { return gpb_gpu_started() && (!gpb_gpu_leaving() || gpb_facts_on_gpu(facts)); }

/* Not on the stack: a signal's handler may leave it by a longjmp, and the next in the queue must not be handed over what is gone. */
static gpb_lane *wait_for_lane(const gpb_facts *facts, bool large)
{
    waiter *me = calloc(1, sizeof *me), **end = &queue;
    if (!me) return NULL;
    pthread_cond_init(&me->look, NULL);
    me->device = facts->device - 1, me->large = large;
    while (*end) end = &(*end)->next;
    *end = me;
    while (!me->lane && may_begin(facts)) {
        if (next_large() == me) doze(me);
        else pthread_cond_wait(&me->look, &lock);
    }
    gpb_lane *lane = me->lane;
    for (waiter **at = &queue; *at && !lane; at = &(*at)->next)
        if (*at == me) {
            *at = me->next;
            break;
        }
    pthread_cond_destroy(&me->look);
    free(me);
    return lane;
}

void gpb_gpu_wake(void)
{
    pthread_mutex_lock(&lock);
    for (waiter *w = queue; w; w = w->next) pthread_cond_signal(&w->look);
    pthread_cond_broadcast(&more_room);
    pthread_mutex_unlock(&lock);
}

static bool sweeping;                        /* under the lock: a thread is about that gives idle memory back; and it is just doing so */
static bool freeing;

bool gpb_gpu_idle(void)
{
    if (pthread_mutex_trylock(&lock)) return false;
    bool idle = !freeing;
    for (int i = 0; i < device_count; i++)
        for (int j = 0; j < GPB_LANES; j++) idle &= !lanes[i][j].busy;
    pthread_mutex_unlock(&lock);
    return idle;
}

enum { SWEEPER_STACK = 256 << 10 };          /* the driver's part of it is not known */
static void *sweep_idle(void *unused);

static void stop_sweeping(void)
{
    pthread_mutex_lock(&lock);
    sweeping = false;
    pthread_mutex_unlock(&lock);
}

static void release(gpb_lane *lane)
{
    pthread_mutex_lock(&lock);
    if (lane->life != lane->device->life) forget(lane);
    lane->busy = false;
    lane->until_ns = gpb_clock_ns();
    const bool first = lane->arena && !sweeping;
    sweeping |= first;
    hand_out();
    pthread_cond_broadcast(&more_room);
    pthread_mutex_unlock(&lock);
    if (first && gpb_thread_begin(sweep_idle, SWEEPER_STACK)) stop_sweeping();
}

gpb_lane *gpb_gpu_take(const gpb_facts *facts, bool large)
{
    gpb_lane *lane = NULL;
    pthread_mutex_lock(&lock);
    if (may_begin(facts) && !(lane = occupy(find_lane(facts->device - 1, large)))) lane = wait_for_lane(facts, large);
    pthread_mutex_unlock(&lock);
    if (!lane) return NULL;
    CUresult result = enter_lane(lane);
    if (!result) return lane;
    gpb_gpu_failed(lane, result);
    release(lane);
    return NULL;
}

void gpb_gpu_give(gpb_lane *lane)
{
    gpb_gpu_exit();
    release(lane);
}

void gpb_gpu_prepare(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    for (int i = 0; i < device_count; i++) {
        gpb_lane *lane = gpb_gpu_take(&(gpb_facts){ .device = i + 1 }, true);
        if (lane) gpb_gpu_give(lane);
    }
    gpb_driver_capture_mode(&mode);
}

/* ---- device memory. A call for which there is too little waits until others give theirs back, in the order in which calls ask. Nobody
   waits for ever: who waits holds none, and who holds some waits neither for more nor for a lane before all of it is given back. */

/* cuMemFree waits for all kernels of the process. Where the program has some of its own, one of them may wait for what a thread of the program is
   yet to launch, and that for the driver: so arenas there come from the device's pool, whose memory goes back without such a wait, and which is
   the program's as well. It takes 46 to 166 ms for 28 GiB, cuMemAlloc 1.8 (H200). A lane's streams are not in order with each other: the
   arena is there for all of them when the one that asked for it has it. */
static CUresult get_memory(gpb_lane *lane, int64_t bytes)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (lane->device->pooled) {
        result = driver->cuMemAllocAsync(&lane->arena, (size_t)bytes, lane->stream);
        if (!result) result = driver->cuStreamSynchronize(lane->stream);
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED) result = driver->cuMemAlloc(&lane->arena, (size_t)bytes);
    if (result) lane->arena = 0;
    return result;
}

/* Of a lane whose calls are through. The driver keeps a pool's memory until the stream is waited for. */
static void give_memory(const gpb_device *device, CUstream stream, CUdeviceptr arena)
{
    if (!device->pooled || driver->cuMemFreeAsync(arena, stream)) driver->cuMemFree(arena);
    else driver->cuStreamSynchronize(stream);
}

/* Under the lock, which it gives up for a moment: calls that need no memory must not wait for what the driver waits for. */
static void free_arena(gpb_lane *lane)
{
    gpb_device *device = lane->device;
    const CUdeviceptr arena = lane->arena;
    const int64_t bytes = lane->arena_bytes;
    const bool lives = lane->life == device->life;
    if (!arena) return;
    lane->arena = 0, lane->arena_bytes = 0;
    pthread_mutex_unlock(&lock);
    if (lives && gpb_gpu_same(device)) give_memory(device, lane->stream, arena);
    pthread_mutex_lock(&lock);
    device->held -= bytes;
    pthread_cond_broadcast(&more_room);
}

/* Under the lock, but while it frees: frees what idle lanes of this device hold until `bytes` more fit. */
static bool make_room(gpb_device *device, int64_t bytes)
{
    gpb_lane *of = lanes[device - devices];
    for (int j = 0; j < GPB_LANES && device->held + bytes > device->budget; j++)
        if (!of[j].busy) free_arena(&of[j]);
    return device->held + bytes <= device->budget;
}

/* Under the lock: who has waited longest, or NULL. */
static const gpb_lane *first_waiting(const gpb_lane *of)
{
    const gpb_lane *first = NULL;
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].wanted && (!first || of[j].asked < first->asked)) first = &of[j];
    return first;
}

/* Under the lock: so many bytes for this lane keep nobody waiting who asked before. Calls that asked after the first that waits may have,
   all together, what it leaves of the budget. So it has room when those are done that asked before it; and small calls can pass. */
static bool is_fair(const gpb_lane *lane, int64_t bytes)
{
    const gpb_lane *of = lanes[lane->device - devices], *first = first_waiting(of);
    if (!first || first == lane) return true;
    int64_t after = bytes;
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy && &of[j] != lane && of[j].asked > first->asked) after += of[j].arena_bytes;
    return after <= lane->device->budget - first->wanted;
}

static bool has_room(const gpb_lane *lane, int64_t bytes) { return is_fair(lane, bytes) && make_room(lane->device, bytes); }

enum { ARENA_GRAIN = 32 << 20 };

/* Under the lock, for a lane without an arena: bytes that it may allocate, at least so many. 0: the device has not as many, or the GPU is
   given up. */
static int64_t claim(gpb_lane *lane, int64_t bytes)
{
    gpb_device *device = lane->device;
    const int64_t ample = (bytes / ARENA_GRAIN + 1) * ARENA_GRAIN;      /* calls that grow little by little find it large enough */
    int64_t claimed = 0;
    lane->wanted = bytes <= device->budget ? bytes : 0;
    pthread_cond_broadcast(&more_room);              /* what this lane had is free */
    while (lane->wanted && gpb_gpu_started()) {
        claimed = has_room(lane, ample) ? ample : has_room(lane, bytes) ? bytes : 0;
        if (claimed) break;
        pthread_cond_wait(&more_room, &lock);
    }
    lane->wanted = 0;
    lane->arena_bytes = claimed, device->held += claimed;
    pthread_cond_broadcast(&more_room);              /* another may be the first now */
    return claimed;
}

/* The driver has less than the budget says: what idle lanes keep is given up for it. */
static CUresult allocate(gpb_lane *lane, int64_t bytes)
{
    gpb_device *device = lane->device;
    CUresult result = get_memory(lane, bytes);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    pthread_mutex_lock(&lock);
    const int64_t before = device->held;
    make_room(device, device->budget);
    const bool more = device->held < before;
    pthread_mutex_unlock(&lock);
    return more ? get_memory(lane, bytes) : result;
}

bool gpb_gpu_arena(gpb_lane *lane, int64_t bytes)
{
    static int64_t asked;
    pthread_mutex_lock(&lock);
    lane->asked = ++asked;
    bool there = bytes <= lane->arena_bytes && is_fair(lane, lane->arena_bytes);
    if (!there) free_arena(lane);
    const int64_t claimed = there ? 0 : claim(lane, bytes);
    pthread_mutex_unlock(&lock);
    if (there || !claimed) return there || !bytes;
    CUresult result = allocate(lane, claimed);
    if (!result) return true;
    pthread_mutex_lock(&lock);
    lane->device->held -= claimed, lane->arena_bytes = 0;
    pthread_cond_broadcast(&more_room);
    pthread_mutex_unlock(&lock);
    gpb_gpu_failed(lane, result);
    return false;
}

/* ---- device memory that nobody uses any more. Whatever waits for the driver here does so without
   the lock. The thread ends when there is nothing left, so that it is no reason for a process not to end. */

/* An idle lane's arena that is due, and then nobody's. */
typedef struct due {
    gpb_device *device;
    CUstream stream;
    CUdeviceptr arena;                       /* 0: none is */
    int64_t bytes, wait_ns;                  /* until the next one is; 0: there is none */
    unsigned life;
} due;

static due take_due(void)
{
    due d = { 0 };
    pthread_mutex_lock(&lock);
    const int64_t now = gpb_clock_ns();
    for (int x = 0; x < device_count * GPB_LANES && !d.arena && !gpb_gpu_leaving(); x++) {
        gpb_lane *lane = &lanes[x / GPB_LANES][x % GPB_LANES];
        if (lane->busy || !lane->arena) continue;
        const int64_t left = lane->until_ns + GPB_IDLE_NS - now;
        if (left > 0 && (!d.wait_ns || left < d.wait_ns)) d.wait_ns = left;
        if (left > 0) continue;
        d.device = lane->device, d.stream = lane->stream, d.arena = lane->arena, d.bytes = lane->arena_bytes, d.life = lane->life;
        lane->arena = 0, lane->arena_bytes = 0;
    }
    if (!d.arena && !d.wait_ns) sweeping = false;
    freeing = d.arena != 0;
    pthread_mutex_unlock(&lock);
    return d;
}

/* Gives back what is due. Nanoseconds until something else will be, 0: nothing, and another thread is to be begun then. */
static int64_t sweep(void)
{
    due d;
    while ((d = take_due()).arena) {
        if (gpb_gpu_started() && !gpb_gpu_enter(d.device)) {
            if (d.life == d.device->life) give_memory(d.device, d.stream, d.arena);
            gpb_gpu_exit();
        }
        pthread_mutex_lock(&lock);
        d.device->held -= d.bytes, freeing = false;
        pthread_cond_broadcast(&more_room);
        pthread_mutex_unlock(&lock);
    }
    return d.wait_ns;
}

static void *sweep_idle(void *unused)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_driver_capture_mode(&mode);
    for (int64_t wait_ns = GPB_IDLE_NS; wait_ns > 0; wait_ns = sweep()) {
        wait_ns += 10000000;
        nanosleep(&(struct timespec){ wait_ns / 1000000000, wait_ns % 1000000000 }, NULL);
    }
    return unused;
}

/* ---- the end: the context goes with all that is in it, unless the program has it, too */

static void let_lane_go(gpb_lane *lane)
{
    if (lane->arena) driver->cuMemFree(lane->arena);
    gpb_pinned_free(&lane->words);
    if (lane->up) gpb_belt_free(lane->up);
    if (lane->down) gpb_belt_free(lane->down);
    lane->arena = 0, lane->arena_bytes = 0, lane->ready = false;
}

static void set_freeing(bool now)
{
    pthread_mutex_lock(&lock);
    freeing = now;
    pthread_mutex_unlock(&lock);
}

void gpb_gpu_let_lanes_go(void)
{
    CUcontext popped;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    set_freeing(true);
    for (int i = 0; i < device_count; i++) {
        const bool entered = !driver->cuCtxPushCurrent(devices[i].context);
        for (int j = 0; j < GPB_LANES && entered; j++) let_lane_go(&lanes[i][j]);
        if (entered) driver->cuCtxPopCurrent(&popped);
        driver->cuDevicePrimaryCtxRelease(devices[i].handle);
    }
    set_freeing(false);
}

/* Set to zero once: each launch leaves them so, one that was refused has not touched them, and one that died has taken its context along.
   4 KiB beside the budget. */
bool gpb_gpu_counters(gpb_lane *lane)
{
    const size_t bytes = GPB_MOST_SHARERS * sizeof(uint32_t);
    CUdeviceptr counters = 0;
    if (lane->counters) return true;
    CUresult result = driver->cuMemAlloc(&counters, bytes);
    if (!result) result = driver->cuMemsetD8Async(counters, 0, bytes, lane->stream);
    if (!result) result = driver->cuStreamSynchronize(lane->stream);      /* a call's kernels may go down the legacy stream instead */
    if (!result) lane->counters = counters;
    else if (counters) driver->cuMemFree(counters);
    gpb_gpu_failed(lane, result);
    return !result;
}
