/* SPDX-License-Identifier: MIT */
/* The GPUs; see gpu.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dispatch/policy.h"
#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/gpu/lanes.h"
#include "src/service/clock.h"
#include "src/service/events.h"
#include "src/service/json.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/traps.h"

enum state { UNTRIED, ON, OFF };

#define START_S 0.35                     /* the longest start behind host calls that leave it a core (H200) */
#define ANOTHER_S 0.3                    /* for each context after the first */
/* Longest that the end of the program waits for calls on the GPU, and that calls wait for the end. */
#define LEAVE_S 1.0

static _Atomic int state = UNTRIED;
/* The reason reported for a call that did not wait for the start to finish. */
static const char *_Atomic why = "starting the GPU takes too long";
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic double expected_s = START_S;      /* how long the start will take */
static _Atomic double took_s;                    /* how long it took */
static gpb_device devices[GPB_DEVICES];
static int device_count;
static atomic_bool present;              /* the driver has GPUs or does not say; the program may use them */
static const gpb_driver *driver;
static atomic_bool touched;              /* CUDA is started or about to be: a fork from here on loses it */
static _Atomic int noted;                /* 1 + the device of the program's current context; 0: none */
static atomic_bool forked;               /* this is the child of such a fork, so no driver can be asked */
static atomic_bool leaving;              /* the program is ending; */
static pthread_t ends;                   /* the thread that ends it; */
static double leave_until_s;             /* until when others wait for it. Both are set before `leaving` */
static atomic_bool occupied;             /* gpb_gpu_occupy */

static void turn_off(const char *because)
{
    atomic_store(&why, because);
    atomic_store(&state, OFF);
}

/* CUDA does not survive a fork. The child computes on the host and touches no lock and no lane. */
void gpb_gpu_in_child(void)
{
    atomic_store(&forked, atomic_load(&touched));
    atomic_store(&took_s, 0);
    if (atomic_load(&touched) && gpb_gpu_possible()) turn_off("forked after the GPU was started");
}

/* Runs when main has returned or exit was called, before libcuda's own exit handler. libcuda promises nothing
   about threads that are inside it or work that is queued by then (one of 25 such exits hung, 2026-11-22,
   H200). So no new call begins on the GPU, and running calls leave the rest to the host and are waited for.
   The wait has a limit, because this thread may itself be inside such a call, in a signal handler. */
__attribute__((noinline)) static void wait_for_calls(void)
{
    ends = pthread_self();
    leave_until_s = gpb_clock_s() + LEAVE_S;
    atomic_store(&leaving, true);
    /* Also in a forked child, where a lock may be held by a thread that is gone. */
    if (!gpb_gpu_possible()) return;
    while ((!gpb_lanes_idle() || atomic_load(&occupied)) && gpb_clock_s() < leave_until_s)
        nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

static void leave(void)
{
    if (atomic_load(&leaving)) return;
    gpb_traps traps;
    gpb_traps_hold(&traps);
    wait_for_calls();
    gpb_traps_release(&traps);
}

/* The host BLAS is ending, too. OpenBLAS 0.3.21 dies in 1 of 20 such exits if it is computing then, and in
   every second one if all calls come to it at that moment. The rest of such a call is seldom missed. But the
   thread that ends the program may be waiting for this one, so after the wait the rest is computed. */
void gpb_gpu_await_end(void)
{
    if (pthread_equal(ends, pthread_self())) return;
    while (gpb_clock_s() < leave_until_s) nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* GPUBLAS_DEVICES: "auto", "all", or ordinals separated by commas. */
static const char *device_list(void)
{
    const char *list = gpb_option_text(GPB_OPTION_DEVICES);
    if (strcmp(list, "auto") == 0 || strcmp(list, "all") == 0
        || (strspn(list, "0123456789,") == strlen(list) && *list != ','))
        return list;
    gpb_log_warn("GPUBLAS_DEVICES=%s is not auto, all or numbers separated by commas; using auto", list);
    return "auto";
}

void gpb_gpu_note_device(void)
{
    CUdevice device;
    const gpb_driver *open = gpb_driver_get();
    if (open && !atomic_load(&noted) && !open->cuCtxGetDevice(&device)) atomic_store(&noted, device + 1);
}

/* The program or a library in it uses a context on the device. So it has memory there and the right to use
   it. */
static bool is_active(const gpb_driver *open, CUdevice device)
{
    unsigned flags;
    int active = 0;
    return open->cuDevicePrimaryCtxGetState && !open->cuDevicePrimaryCtxGetState(device, &flags, &active)
           && active;
}

/* Before the program has called cuInit, the driver refuses to count. */
bool gpb_gpu_in_use(void)
{
    int count = 0;
    bool in_use = false;
    CUdevice device;
    const gpb_driver *open = gpb_driver_get();
    if (!open || open->cuDeviceGetCount(&count)) return false;
    for (int i = 0; i < count && !in_use; i++)
        in_use = !open->cuDeviceGet(&device, i) && is_active(open, device);
    return in_use;
}

/* The device where the program computes; 0: it has chosen none, because the first is everybody's default. */
static int programs_own(int count)
{
    CUdevice device;
    int active = 0;
    for (int ordinal = count - 1; ordinal >= 0; ordinal--) {
        if (driver->cuDeviceGet(&device, ordinal)) continue;
        if (atomic_load(&noted) == device + 1) return ordinal;
        if (is_active(driver, device)) active = ordinal;
    }
    return active;
}

/* The device of `auto`. The program's own choice comes first, because its operands are there. Without one the
   ranks on a machine take turns, as else all would compute on its first GPU. */
static int choose(int count)
{
    const char *by;
    const int own = count > 0 ? programs_own(count) : 0;
    const int64_t rank = gpb_option_local_rank(&by);
    if (own || rank < 0 || count < 2) return own;
    gpb_log_debug("%s=%lld: GPU %lld of %d", by, (long long)rank, (long long)(rank % count), count);
    return (int)(rank % count);
}

static bool wanted(const char *list, int ordinal)
{
    if (*list == 'a') return true;      /* auto, until one device is found; all */
    for (const char *at = list; *at; at += *at == ',') {
        char *end;
        if (strtol(at, &end, 10) == ordinal && end != at) return true;
        at = end;
    }
    return false;
}

/* A device in exclusive mode serves one process. If this process has no context there yet, the device may be
   meant for a child or another process, which our context would lock out. So we take it only if the user says
   so: in a list, or by GPUBLAS_OFFLOAD=always. */
static bool is_free(CUdevice device, bool active, bool named)
{
    int mode = CU_COMPUTEMODE_DEFAULT;
    const CUresult result = driver->cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device);
    return result || mode == CU_COMPUTEMODE_DEFAULT
           || (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && (active || named));
}

/* Pools came with CUDA 11.2, and not every device has them. */
static bool has_pool(CUdevice device)
{
    int there = 0;
    const CUresult result = driver->cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                                         device);
    return !result && there && driver->cuMemAllocAsync && driver->cuMemFreeAsync;
}

static CUresult start_device(gpb_device *device, int ordinal, bool named)
{
    int major = 0, minor = 0;
    size_t bytes_free = 0, total = 0;
    CUcontext popped;
    *device = (gpb_device){ .ordinal = ordinal };
    CUresult result = driver->cuDeviceGet(&device->handle, ordinal);
    if (!result) result = driver->cuDeviceGetName(device->name, sizeof device->name, device->handle);
    if (!result)
        result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                              device->handle);
    if (!result)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              device->handle);
    if (!result)
        result = driver->cuDeviceGetAttribute(&device->concurrent,
                                              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device->handle);
    if (!result)
        result = driver->cuDeviceGetAttribute(&device->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                              device->handle);
    const bool active = !result && is_active(driver, device->handle);
    if (!result && !is_free(device->handle, active, named)) result = CUDA_ERROR_NOT_PERMITTED;
    if (!result) result = driver->cuDevicePrimaryCtxRetain(&device->context, device->handle);
    if (result) return result;
    result = driver->cuCtxPushCurrent(device->context);
    if (!result) {
        result = driver->cuMemGetInfo(&bytes_free, &total);
        driver->cuCtxPopCurrent(&popped);
    }
    if (result) driver->cuDevicePrimaryCtxRelease(device->handle);
    device->arch = major * 10 + minor;
    device->pooled = active && has_pool(device->handle);
    /* A program with a context of its own will want memory, too. */
    int64_t asked = gpb_option_number(GPB_OPTION_MEMORY),
            most = active ? (int64_t)(bytes_free / 2) : (int64_t)(bytes_free / 5 * 4);
    device->budget = asked && asked < most ? asked : most;
    return result;
}

static CUresult initialise(int *count)
{
    const CUresult result = driver->cuInit(0);
    return result ? result : driver->cuDeviceGetCount(count);
}

/* Under `starting`. */
static void start(void)
{
    int count = 0;
    const char *missing = NULL;
    driver = gpb_driver_open(&missing);
    if (!driver) {
        turn_off(missing);
        return;
    }
    const double begin_s = gpb_clock_s();
    CUresult result = initialise(&count);
    atomic_store(&present, result ? result != CUDA_ERROR_NO_DEVICE : count > 0);
    atexit(leave);       /* runs before libcuda's own handlers, because those are registered already, */
    const char *list = device_list();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    const bool one = strcmp(list, "auto") == 0,
               named = *list != 'a' || gpb_option_number(GPB_OPTION_OFFLOAD) == GPB_OFFLOAD_ALWAYS;
    const int first = one && !result ? choose(count) : 0;
    for (int i = 0, many = 0; !result && !one && i < count; i++)
        if (wanted(list, i) && many++) atomic_store(&expected_s, gpb_gpu_start_s() + ANOTHER_S);
    for (int i = 0; !result && i < count && device_count < (one ? 1 : GPB_DEVICES); i++) {
        const int ordinal = (first + i) % count;
        if (!wanted(list, ordinal)) continue;
        CUresult refused = start_device(&devices[device_count], ordinal, named);
        if (refused) gpb_log_debug("GPU %d cannot be used: %s", ordinal, gpb_driver_error(refused));
        else device_count++;
    }
    gpb_driver_capture_mode(&mode);
    if (result || device_count == 0) {
        if (!result && *list != 'a')
            gpb_log_warn("GPUBLAS_DEVICES=%s: none of these GPUs can be used; the host computes", list);
        turn_off(result ? gpb_driver_error(result) : "none of the GPUs in GPUBLAS_DEVICES can be used");
        return;
    }
    atexit(leave);       /* and before those that came with the contexts */
    gpb_lanes_make(devices, device_count);
    atomic_store(&why, "");
    atomic_store(&state, ON);
    for (int i = 0; i < device_count; i++)
        gpb_log_debug("GPU %d: %s, sm_%d, %d SMs, budget %lld MiB", devices[i].ordinal, devices[i].name,
                      devices[i].arch, devices[i].sms, (long long)(devices[i].budget >> 20));
    atomic_store(&took_s, gpb_clock_s() - begin_s);
    if (gpb_option_traces()) gpb_events_add("start", "start the GPU", begin_s, gpb_clock_s(), "");
    gpb_log_debug("starting the GPU took %.0f ms", 1e3 * atomic_load(&took_s));
}

bool gpb_gpu_start(void)
{
    if (atomic_load(&state) == UNTRIED) {
        gpb_gpu_touch();
        int cancel;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        pthread_mutex_lock(&starting);
        if (atomic_load(&state) == UNTRIED) start();
        pthread_mutex_unlock(&starting);
        pthread_setcancelstate(cancel, NULL);
    }
    return atomic_load(&state) == ON;
}

bool gpb_gpu_untried(void) { return atomic_load(&state) == UNTRIED; }
void gpb_gpu_touch(void) { atomic_store(&touched, true); }
double gpb_gpu_took_s(void) { return atomic_load(&took_s); }
double gpb_gpu_start_s(void) { return atomic_load(&expected_s); }
void gpb_gpu_occupy(bool now) { atomic_store(&occupied, now); }
bool gpb_gpu_forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed); }
bool gpb_gpu_leaving(void) { return atomic_load(&leaving); }
bool gpb_gpu_started(void) { return atomic_load_explicit(&state, memory_order_acquire) == ON; }
bool gpb_gpu_lost(void)
{
    return !gpb_gpu_possible() && atomic_load_explicit(&present, memory_order_relaxed);
}
bool gpb_gpu_possible(void) { return atomic_load_explicit(&state, memory_order_acquire) != OFF; }
const char *gpb_gpu_why(void) { return atomic_load(&why); }

void gpb_gpu_give_up(const char *because)
{
    turn_off(because);
    gpb_lanes_wake();
    gpb_context_let_go();
}

int gpb_device_list(gpb_device **first)
{
    *first = devices;
    return gpb_gpu_started() ? device_count : 0;
}

/* Counts the kernels of the table that run on the device. fd: where to write why each of the others does not
   run, or -1. */
static int count_kernels(gpb_device *device, int fd)
{
    CUcontext popped;
    int running = 0;
    if (driver->cuCtxPushCurrent(device->context)) return 0;
    for (int k = 0; k < gpb_kernel_count; k++) {
        const gpb_kernel *kernel = &gpb_kernels[k];
        CUfunction function;
        CUresult result = gpb_kernel_table_runs(kernel->image, device->arch)
                              ? gpb_kernels_find(device, k, &function) : CUDA_ERROR_NO_BINARY_FOR_GPU;
        running += !result;
        if (result && fd >= 0)
            dprintf(fd, "               %s cannot run here: %s\n", kernel->name, gpb_driver_error(result));
    }
    driver->cuCtxPopCurrent(&popped);
    return running;
}

int gpb_gpu_count(const char **name, int *unserved_arch)
{
    if (!gpb_gpu_start()) return 0;
    *name = devices[0].name;
    *unserved_arch = count_kernels(&devices[0], -1) ? 0 : devices[0].arch;
    return device_count;
}

void gpb_gpu_report(int fd, bool all)
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
        dprintf(fd, "GPU %-10d %s, sm_%d, %d SMs; uses up to %lld MiB of its memory\n", device->ordinal,
                device->name, device->arch, device->sms, (long long)(device->budget >> 20));
        const int running = count_kernels(device, all ? fd : -1);
        dprintf(fd, "               %d of %d kernels run there\n", running, gpb_kernel_count);
    }
}

void gpb_gpu_print_json(int fd)
{
    int version = 0;
    const bool started = gpb_gpu_start();
    if (started) driver->cuDriverGetVersion(&version);
    if (version) dprintf(fd, "\"driver\": \"CUDA %d.%d\", ", version / 1000, version % 1000 / 10);
    else dprintf(fd, "\"driver\": null, ");
    dprintf(fd, "\"why_none\": ");
    gpb_json_string(fd, started ? NULL : gpb_gpu_why());
    dprintf(fd, ", \"devices\": [");
    for (int i = 0; started && i < device_count; i++) {
        gpb_device *device = &devices[i];
        dprintf(fd, "%s\n  {\"number\": %d, \"name\": ", i ? "," : "", device->ordinal);
        gpb_json_string(fd, device->name);
        dprintf(fd, ", \"architecture\": \"sm_%d\", \"multiprocessors\": %d, \"memory_bytes\": %lld, "
                    "\"kernels\": %d}", device->arch, device->sms, (long long)device->budget,
                count_kernels(device, -1));
    }
    dprintf(fd, "]");
}
