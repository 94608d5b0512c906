/* SPDX-License-Identifier: MIT */
/* Device state. One lock guards what lanes share (who is busy, who holds how much); nothing slow happens under it but the start and
   freeing memory. */
#include "src/gpu_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/gpu_kernels.h"
#include "src/log.h"
#include "src/option.h"

enum state { UNTRIED, ON, OFF };

static _Atomic int state = UNTRIED;
static const char *_Atomic why = "not started";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lane_free = PTHREAD_COND_INITIALIZER;
static gpb_device devices[GPB_DEVICES];
static int device_count;
static gpb_lane lanes[GPB_DEVICES][GPB_LANES];
static unsigned turn;
static const gpb_driver *driver;
static atomic_bool touched;              /* CUDA was, or is being, started: a fork from here on loses it */

static void turn_off(const char *because)
{
    atomic_store(&why, because);
    atomic_store(&state, OFF);
}

/* CUDA does not survive a fork: the child computes on the host, and touches neither the lock nor the lanes. */
static void in_child(void)
{
    if (atomic_load(&touched) && gpb_gpu_possible()) turn_off("forked after the GPU was started");
}

/* GPUBLAS_DEVICES: "all", or ordinals separated by commas. */
static const char *device_list(void)
{
    const char *list = gpb_option_text(GPB_OPTION_DEVICES);
    if (strcmp(list, "all") == 0 || (strspn(list, "0123456789,") == strlen(list) && *list != ',')) return list;
    gpb_log_warn("GPUBLAS_DEVICES=%s: not all, nor ordinals separated by commas; using 0", list);
    return "0";
}

static bool wanted(const char *list, int ordinal)
{
    if (strcmp(list, "all") == 0) return true;
    for (const char *at = list; *at; at += *at == ',') {
        char *end;
        if (strtol(at, &end, 10) == ordinal && end != at) return true;
        at = end;
    }
    return false;
}

static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static CUresult start_device(gpb_device *device, int ordinal)
{
    int major = 0, minor = 0;
    size_t bytes_free = 0, total = 0;
    CUcontext popped;
    *device = (gpb_device){ .ordinal = ordinal };
    CUresult result = driver->cuDeviceGet(&device->handle, ordinal);
    if (!result) result = driver->cuDeviceGetName(device->name, sizeof device->name, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&device->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->handle);
    if (!result) result = driver->cuDevicePrimaryCtxRetain(&device->context, device->handle);
    if (result) return result;
    result = driver->cuCtxPushCurrent(device->context);
    if (!result) {
        result = driver->cuMemGetInfo(&bytes_free, &total);
        driver->cuCtxPopCurrent(&popped);
    }
    if (result) driver->cuDevicePrimaryCtxRelease(device->handle);
    device->arch = major * 10 + minor;
    int64_t asked = gpb_option_number(GPB_OPTION_MEMORY), most = (int64_t)(bytes_free / 5 * 4);
    device->budget = asked && asked < most ? asked : most;
    return result;
}

/* Under the lock. */
static void start(void)
{
    int count = 0;
    const char *missing = NULL;
    CUresult result;
    driver = gpb_driver_open(&missing);
    if (!driver) {
        turn_off(missing);
        return;
    }
    result = driver->cuInit(0);
    if (!result) result = driver->cuDeviceGetCount(&count);
    const char *list = device_list();
    for (int ordinal = 0; !result && ordinal < count && device_count < GPB_DEVICES; ordinal++) {
        if (!wanted(list, ordinal)) continue;
        CUresult refused = start_device(&devices[device_count], ordinal);
        if (refused) gpb_log_debug("GPU %d refused: %s", ordinal, gpb_driver_error(refused));
        else device_count++;
    }
    if (result || device_count == 0) {
        turn_off(result ? gpb_driver_error(result) : "no GPU in GPUBLAS_DEVICES");
        return;
    }
    for (int i = 0; i < device_count; i++)
        for (int j = 0; j < GPB_LANES; j++) lanes[i][j].device = &devices[i];
    atomic_store(&why, "");
    atomic_store(&state, ON);
    for (int i = 0; i < device_count; i++)
        gpb_log_debug("GPU %d: %s, sm_%d, %d SMs, budget %lld MiB", devices[i].ordinal, devices[i].name, devices[i].arch,
                      devices[i].sms, (long long)(devices[i].budget >> 20));
}

bool gpb_gpu_start(void)
{
    if (atomic_load(&state) == UNTRIED) {
        /* Before the lock: a child forked while another thread holds it must find the GPU off. */
        pthread_once(&atfork_once, watch_forks);
        atomic_store(&touched, true);
        int cancel;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        pthread_mutex_lock(&lock);
        if (atomic_load(&state) == UNTRIED) start();
        pthread_mutex_unlock(&lock);
        pthread_setcancelstate(cancel, NULL);
    }
    return atomic_load(&state) == ON;
}

bool gpb_gpu_started(void) { return atomic_load(&state) == ON; }
bool gpb_gpu_possible(void) { return atomic_load(&state) != OFF; }
const char *gpb_gpu_why(void) { return atomic_load(&why); }

void gpb_gpu_give_up(const char *because)
{
    turn_off(because);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&lane_free);
    pthread_mutex_unlock(&lock);
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

static CUresult ready_belt(gpb_belt **belt)
{
    if (!*belt) *belt = calloc(1, sizeof **belt);
    return *belt ? gpb_belt_ready(*belt, driver) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What a lane owns is made at its first use and kept; its context is current. */
static CUresult ready_lane(gpb_lane *lane)
{
    CUresult result = CUDA_SUCCESS;
    if (lane->ready) return result;
    if (!lane->stream) result = driver->cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING);
    if (!result) result = ready_events(&lane->after, 1);
    if (!result) result = ready_events(&lane->arrived, 1);
    if (!result) result = ready_events(lane->tile, GPB_TILE_EVENTS);
    if (!result) result = ready_events(lane->freed[0], 4);
    if (!result) result = ready_events(lane->home, 2);
    if (!result && !lane->notice) result = driver->cuMemHostAlloc((void **)&lane->notice, sizeof *lane->notice, CU_MEMHOSTALLOC_PORTABLE);
    if (!result && !lane->table) result = driver->cuMemHostAlloc((void **)&lane->table, GPB_TABLE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
    if (!result) result = ready_belt(&lane->up);
    if (!result) result = ready_belt(&lane->down);
    lane->ready = !result;
    return result;
}

/* Under the lock: an idle lane, one that already has its memory before one that has not. */
static gpb_lane *idle_lane(int device)
{
    gpb_lane *best = NULL;
    int from = device >= 0 ? device : (int)(turn % (unsigned)device_count), many = device >= 0 ? 1 : device_count;
    for (int i = 0; i < many && !best; i++) {
        gpb_lane *of = lanes[(from + i) % device_count];
        for (int j = 0; j < GPB_LANES; j++)
            if (!of[j].busy && (!best || of[j].arena_bytes > best->arena_bytes)) best = &of[j];
    }
    return best;
}

/* Under the lock. */
static bool is_alone(const gpb_lane *lane)
{
    const gpb_lane *of = lanes[lane->device - devices];
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy) return false;
    return true;
}

gpb_lane *gpb_gpu_take(const gpb_facts *facts)
{
    CUcontext popped;
    int device = facts->device - 1;
    gpb_lane *lane = NULL;
    pthread_mutex_lock(&lock);
    while (gpb_gpu_started() && !(lane = idle_lane(device))) pthread_cond_wait(&lane_free, &lock);
    if (lane) {
        lane->alone = is_alone(lane);
        lane->busy = true;
        turn++;
    }
    pthread_mutex_unlock(&lock);
    if (!lane) return NULL;
    CUresult result = driver->cuCtxPushCurrent(lane->device->context);
    if (!result) {
        result = ready_lane(lane);
        if (!result) return lane;
        driver->cuCtxPopCurrent(&popped);
    }
    if (gpb_gpu_sticky(result)) gpb_gpu_give_up(gpb_driver_error(result));
    pthread_mutex_lock(&lock);
    lane->busy = false;
    pthread_cond_broadcast(&lane_free);
    pthread_mutex_unlock(&lock);
    return NULL;
}

void gpb_gpu_give(gpb_lane *lane)
{
    CUcontext popped;
    driver->cuCtxPopCurrent(&popped);
    pthread_mutex_lock(&lock);
    lane->busy = false;
    pthread_cond_broadcast(&lane_free);
    pthread_mutex_unlock(&lock);
}

/* Under the lock: the budget less what other busy lanes hold. */
static int64_t room_of(const gpb_lane *lane)
{
    int64_t busy = 0;
    const gpb_lane *of = lanes[lane->device - devices];
    for (int j = 0; j < GPB_LANES; j++)
        if (of[j].busy && &of[j] != lane) busy += of[j].arena_bytes;
    return lane->device->budget - busy;
}

int64_t gpb_gpu_room(const gpb_lane *lane)
{
    pthread_mutex_lock(&lock);
    int64_t room = room_of(lane);
    pthread_mutex_unlock(&lock);
    return room;
}

/* Under the lock. */
static void free_arena(gpb_lane *lane)
{
    if (!lane->arena) return;
    driver->cuMemFree(lane->arena);
    lane->device->held -= lane->arena_bytes;
    lane->arena = 0;
    lane->arena_bytes = 0;
}

/* Under the lock: frees what idle lanes of this device hold until `bytes` more fit. */
static bool make_room(gpb_device *device, int64_t bytes)
{
    gpb_lane *of = lanes[device - devices];
    for (int j = 0; j < GPB_LANES && device->held + bytes > device->budget; j++)
        if (!of[j].busy) free_arena(&of[j]);
    return device->held + bytes <= device->budget;
}

bool gpb_gpu_wait(gpb_lane *lane, int64_t room)
{
    pthread_mutex_lock(&lock);
    free_arena(lane);       /* two that wait for each other's memory would wait for ever */
    bool others = room_of(lane) < lane->device->budget, more = room_of(lane) > room;
    if (others && !more && gpb_gpu_started()) pthread_cond_wait(&lane_free, &lock);
    pthread_cond_broadcast(&lane_free);
    pthread_mutex_unlock(&lock);
    return (others || more) && gpb_gpu_started();
}

bool gpb_gpu_arena(gpb_lane *lane, int64_t bytes)
{
    gpb_device *device = lane->device;
    if (bytes <= lane->arena_bytes) return true;
    pthread_mutex_lock(&lock);
    free_arena(lane);
    bool room = make_room(device, bytes);
    if (room) device->held += bytes;
    pthread_mutex_unlock(&lock);
    if (!room) return false;
    CUdeviceptr arena = 0;
    CUresult result = driver->cuMemAlloc(&arena, (size_t)bytes);
    pthread_mutex_lock(&lock);
    if (result) device->held -= bytes;
    else lane->arena = arena, lane->arena_bytes = bytes;
    pthread_mutex_unlock(&lock);
    if (gpb_gpu_sticky(result)) gpb_gpu_give_up(gpb_driver_error(result));
    return !result;
}

int gpb_gpu_devices(gpb_device **first)
{
    *first = devices;
    return gpb_gpu_started() ? device_count : 0;
}

void gpb_gpu_report(int fd)
{
    int version = 0;
    if (!gpb_gpu_start()) {
        dprintf(fd, "GPU            none: %s\n", gpb_gpu_why());
        return;
    }
    driver->cuDriverGetVersion(&version);
    dprintf(fd, "driver         CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    for (int i = 0; i < device_count; i++) {
        gpb_device *device = &devices[i];
        CUcontext popped;
        dprintf(fd, "GPU %-10d %s, sm_%d, %d SMs, up to %lld MiB for us\n", device->ordinal, device->name, device->arch, device->sms,
                (long long)(device->budget >> 20));
        if (driver->cuCtxPushCurrent(device->context)) continue;
        for (int k = 0; k < gpb_kernel_count; k++) {
            const gpb_kernel *kernel = &gpb_kernels[k];
            CUfunction function;
            CUresult result = gpb_kernel_table_runs(kernel->image, device->arch)
                                  ? gpb_gpu_function(device, k, &function) : CUDA_ERROR_NO_BINARY_FOR_GPU;
            if (result) dprintf(fd, "               %s cannot run here: %s\n", kernel->name, gpb_driver_error(result));
        }
        driver->cuCtxPopCurrent(&popped);
    }
}
