/* SPDX-License-Identifier: MIT */
/* Device memory; see memory.h. A call for which there is too little waits until others give theirs back, in
   the order in which calls ask. Nobody waits for ever: a call that waits holds no memory, and a call that
   holds some gives all of it back before it waits for more or for a lane. */
#include "src/gpu/memory.h"

#include <pthread.h>
#include <time.h>

#include "kernels/gemm_args.h"
#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/service/clock.h"
#include "src/service/thread.h"

/* cuMemFree waits for all kernels of the process. If the program runs kernels of its own, that can deadlock:
   such a kernel may wait for a launch by a thread of the program, and that thread for the driver. In such a
   program arenas come from the device's pool, which the program shares and which takes memory back without
   such a wait. The pool needs 46 to 166 ms for 28 GiB, cuMemAlloc 1.8 (H200). A lane's streams are not
   ordered among each other, so the stream that allocated is waited for before any of them uses the arena. */
static CUresult get_memory(gpb_lane *lane, int64_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    gpb_block *block = &lane->arena;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (lane->device->pooled) {
        result = driver->cuMemAllocAsync(&block->at, (size_t)bytes, lane->stream);
        if (!result) result = driver->cuStreamSynchronize(lane->stream);
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED) result = driver->cuMemAlloc(&block->at, (size_t)bytes);
    if (result) block->at = 0;
    block->stream = lane->stream;
    block->life = lane->life;
    return result;
}

/* Frees a block that is no longer in use. The driver keeps a pool's memory until the stream is waited for. */
static void give_memory(const gpb_device *device, const gpb_block *block)
{
    const gpb_driver *driver = gpb_driver_get();
    if (!device->pooled || driver->cuMemFreeAsync(block->at, block->stream)) driver->cuMemFree(block->at);
    else driver->cuStreamSynchronize(block->stream);
}

/* Under the lock, which is released meanwhile, because calls that need no memory must not wait for the driver
   here. */
static void free_block(gpb_device *device, gpb_block *block)
{
    const gpb_block was = *block;
    if (!was.at) return;
    *block = (gpb_block){ 0 };
    const bool lives = was.life == device->life;
    pthread_mutex_unlock(&gpb_lanes.lock);
    if (lives && gpb_context_same(device)) give_memory(device, &was);
    pthread_mutex_lock(&gpb_lanes.lock);
    device->held -= was.bytes;
    pthread_cond_broadcast(&gpb_lanes.more_room);
}

/* Owners of blocks, in the order in which they are asked for idle ones. False: there is no block of that
   number. */
typedef bool owner(const gpb_device *device, int number, gpb_block **idle);
static owner *const owners[] = { gpb_lanes_block };
enum { OWNERS = sizeof owners / sizeof *owners };

/* Under the lock, which is released while memory is freed. Frees idle blocks of this device until `bytes`
   more fit. */
static bool make_room(gpb_device *device, int64_t bytes)
{
    gpb_block *idle;
    for (int o = 0; o < OWNERS; o++)
        for (int i = 0; device->held + bytes > device->budget && owners[o](device, i, &idle); i++)
            if (idle) free_block(device, idle);
    return device->held + bytes <= device->budget;
}

/* Under the lock: the lane that has waited longest, or NULL. */
static const gpb_lane *first_waiting(const gpb_lane *of)
{
    const gpb_lane *first = NULL;
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].wanted && (!first || of[j].asked < first->asked)) first = &of[j];
    return first;
}

/* Under the lock: true if taking `bytes` delays no call that asked earlier. The first waiter asked for some
   of the budget; calls that asked after it may together hold the rest. So there is room for it once the calls
   before it are done, and small calls can pass. */
static bool is_fair(const gpb_lane *lane, int64_t bytes)
{
    const gpb_lane *of = gpb_lanes.lanes[lane->device - gpb_lanes.devices], *first = first_waiting(of);
    if (!first || first == lane) return true;
    int64_t after = bytes;
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy && &of[j] != lane && of[j].asked > first->asked) after += of[j].arena.bytes;
    return after <= lane->device->budget - first->wanted;
}

static bool has_room(const gpb_lane *lane, int64_t bytes)
{
    return is_fair(lane, bytes) && make_room(lane->device, bytes);
}

enum { ARENA_GRAIN = 32 << 20 };

/* Under the lock, for a lane without an arena: how many bytes it may allocate, at least `bytes`. 0: the
   budget is smaller than that, or the GPU was given up. */
static int64_t claim(gpb_lane *lane, int64_t bytes)
{
    gpb_device *device = lane->device;
    /* So that calls that grow slowly find it large enough. */
    const int64_t ample = (bytes / ARENA_GRAIN + 1) * ARENA_GRAIN;
    int64_t claimed = 0;
    lane->wanted = bytes <= device->budget ? bytes : 0;
    pthread_cond_broadcast(&gpb_lanes.more_room);              /* the lane's old memory is free */
    while (lane->wanted && gpb_gpu_started()) {
        claimed = has_room(lane, ample) ? ample : has_room(lane, bytes) ? bytes : 0;
        if (claimed) break;
        pthread_cond_wait(&gpb_lanes.more_room, &gpb_lanes.lock);
    }
    lane->wanted = 0;
    lane->arena.bytes = claimed;
    device->held += claimed;
    pthread_cond_broadcast(&gpb_lanes.more_room);              /* another may be the first now */
    return claimed;
}

/* If the driver has less than the budget says, idle lanes give up theirs. */
static CUresult allocate(gpb_lane *lane, int64_t bytes)
{
    gpb_device *device = lane->device;
    CUresult result = get_memory(lane, bytes);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    pthread_mutex_lock(&gpb_lanes.lock);
    const int64_t before = device->held;
    make_room(device, device->budget);
    const bool more = device->held < before;
    pthread_mutex_unlock(&gpb_lanes.lock);
    return more ? get_memory(lane, bytes) : result;
}

bool gpb_memory_arena(gpb_lane *lane, int64_t bytes)
{
    static int64_t asked;
    pthread_mutex_lock(&gpb_lanes.lock);
    lane->asked = ++asked;
    bool there = bytes <= lane->arena.bytes && is_fair(lane, lane->arena.bytes);
    if (!there) free_block(lane->device, &lane->arena);
    else if (bytes > lane->arena.kept) lane->arena.kept = 0;
    const int64_t claimed = there ? 0 : claim(lane, bytes);
    pthread_mutex_unlock(&gpb_lanes.lock);
    if (there || !claimed) return there || !bytes;
    CUresult result = allocate(lane, claimed);
    if (!result) return true;
    pthread_mutex_lock(&gpb_lanes.lock);
    lane->device->held -= claimed;
    lane->arena.bytes = 0;
    pthread_cond_broadcast(&gpb_lanes.more_room);
    pthread_mutex_unlock(&gpb_lanes.lock);
    gpb_lanes_failed(lane, result);
    return false;
}

/* ---- idle device memory. Nothing here waits for the driver under the lock. The thread ends when no idle
   memory is left, so it never keeps a process alive. */

/* An idle block whose time is up; the record then owns it. */
typedef struct due {
    gpb_device *device;
    gpb_block block;                         /* at 0: no block */
    int64_t wait_ns;                         /* until the next block is due; 0: there is none */
} due;

/* Under the lock. */
static void find_due(gpb_device *device, owner *owner, int64_t now, due *d)
{
    gpb_block *idle;
    for (int i = 0; !d->block.at && owner(device, i, &idle); i++) {
        if (!idle) continue;
        const int64_t left = idle->until_ns + GPB_IDLE_NS - now;
        if (left > 0 && (!d->wait_ns || left < d->wait_ns)) d->wait_ns = left;
        if (left > 0) continue;
        d->device = device;
        d->block = *idle;
        *idle = (gpb_block){ 0 };
    }
}

static due take_due(void)
{
    due d = { 0 };
    pthread_mutex_lock(&gpb_lanes.lock);
    const int64_t now = gpb_clock_ns();
    for (int x = 0; x < gpb_lanes.device_count * OWNERS && !gpb_gpu_leaving(); x++)
        find_due(&gpb_lanes.devices[x / OWNERS], owners[x % OWNERS], now, &d);
    if (!d.block.at && !d.wait_ns) gpb_lanes.sweeping = false;
    gpb_lanes.freeing = d.block.at != 0;
    pthread_mutex_unlock(&gpb_lanes.lock);
    return d;
}

/* Frees what is due. Returns the nanoseconds until another block is due; 0: none is left, and the thread
   ends. */
static int64_t sweep(void)
{
    due d;
    while ((d = take_due()).block.at) {
        if (gpb_gpu_started() && !gpb_context_enter(d.device)) {
            if (d.block.life == d.device->life) give_memory(d.device, &d.block);
            gpb_context_exit();
        }
        pthread_mutex_lock(&gpb_lanes.lock);
        d.device->held -= d.block.bytes;
        gpb_lanes.freeing = false;
        pthread_cond_broadcast(&gpb_lanes.more_room);
        pthread_mutex_unlock(&gpb_lanes.lock);
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

static void stop_sweeping(void)
{
    pthread_mutex_lock(&gpb_lanes.lock);
    gpb_lanes.sweeping = false;
    pthread_mutex_unlock(&gpb_lanes.lock);
}

enum { SWEEPER_STACK = 256 << 10 };          /* what the driver needs of it is not known */

void gpb_memory_sweep(void)
{
    if (gpb_thread_begin(sweep_idle, SWEEPER_STACK)) stop_sweeping();
}

/* Set to zero once, because each launch leaves them zero: a refused launch has not touched them, and one that
   died has taken its context along. 4 KiB that do not count in the budget. */
bool gpb_memory_counters(gpb_lane *lane)
{
    const gpb_driver *driver = gpb_driver_get();
    const size_t bytes = GPB_MAX_STREAMK_BLOCKS * sizeof(uint32_t);
    CUdeviceptr counters = 0;
    if (lane->counters) return true;
    CUresult result = driver->cuMemAlloc(&counters, bytes);
    if (!result) result = driver->cuMemsetD8Async(counters, 0, bytes, lane->stream);
    /* A call's kernels may use the legacy stream instead. */
    if (!result) result = driver->cuStreamSynchronize(lane->stream);
    if (!result) lane->counters = counters;
    else if (counters) driver->cuMemFree(counters);
    gpb_lanes_failed(lane, result);
    return !result;
}
