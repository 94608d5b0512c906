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
#include "src/service/log.h"
#include "src/service/option.h"

enum state { UNTRIED, ON, OFF };

#define START_S 0.5                      /* a little above what evidence/machine.md has: 0.41 s for a context */
#define ANOTHER_S 0.3                    /* for each context after the first */
#define LEAVE_S 1.0                      /* that the end of the program waits for calls on the GPU, and calls for the end, at most */

static _Atomic int state = UNTRIED;
static const char *_Atomic why = "starting the GPU takes too long";      /* what is said of a call that did not wait for its end */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic double expected_s = START_S;      /* that the start takes */
static gpb_device devices[GPB_DEVICES];
static int device_count;
static atomic_bool present;              /* the driver has GPUs, or does not say: a program may use them even where we cannot */
static const gpb_driver *driver;
static atomic_bool touched;              /* CUDA was, is being or is just about to be started: a fork from here on loses it */
static _Atomic int noted;                /* 1 + the device of a context that the program has current; 0: none */
static atomic_bool forked;               /* this is the child of such a fork: there is no driver to ask */
static atomic_bool leaving;              /* the program is ending: */
static pthread_t ends;                   /* who ends it, */
static double leave_until_s;             /* and until when others wait for that; both set before `leaving` */
static atomic_bool occupied;             /* gpb_gpu_occupy */

static void turn_off(const char *because)
{
    atomic_store(&why, because);
    atomic_store(&state, OFF);
}

/* CUDA does not survive a fork: the child computes on the host, and touches neither a lock nor the lanes. */
void gpb_gpu_in_child(void)
{
    atomic_store(&forked, atomic_load(&touched));
    if (atomic_load(&touched) && gpb_gpu_possible()) turn_off("forked after the GPU was started");
}

/* main has returned, or called exit, and libcuda's own end comes next. What it does with threads that are inside it, or with work that is
   queued, nobody promises (one of 25 such ends hung, 2026-11-22, H200): so no call begins on the GPU any more, those that are on it leave
   the rest to the host, and are waited for. Not for ever: this thread may be one of them, in a signal's handler. */
static void leave(void)
{
    if (atomic_load(&leaving)) return;
    ends = pthread_self();
    leave_until_s = gpb_clock_s() + LEAVE_S;
    atomic_store(&leaving, true);
    if (!gpb_gpu_possible()) return;         /* also in a forked child: its locks may be held by nobody */
    while ((!gpb_lanes_idle() || atomic_load(&occupied)) && gpb_clock_s() < leave_until_s) nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

/* The host BLAS ends as well: OpenBLAS 0.3.21 dies in 1 of 20 such ends if it computes meanwhile, and in every second one if all calls come to
   it just then. The rest of such a call is seldom missed. But whoever ends the program may wait for the thread: then it is computed. */
void gpb_gpu_await_end(void)
{
    if (pthread_equal(ends, pthread_self())) return;
    while (gpb_clock_s() < leave_until_s) nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* GPUBLAS_DEVICES: "auto", "all", or ordinals separated by commas. */
static const char *device_list(void)
{
    const char *list = gpb_option_text(GPB_OPTION_DEVICES);
    if (strcmp(list, "auto") == 0 || strcmp(list, "all") == 0 || (strspn(list, "0123456789,") == strlen(list) && *list != ',')) return list;
    gpb_log_warn("GPUBLAS_DEVICES=%s is not auto, all or numbers separated by commas; using auto", list);
    return "auto";
}

void gpb_gpu_note_device(void)
{
    CUdevice device;
    const gpb_driver *open = gpb_driver_open(NULL);
    if (open && !atomic_load(&noted) && !open->cuCtxGetDevice(&device)) atomic_store(&noted, device + 1);
}

/* The program, or another library in it, has a context there that it uses, and so memory and the right to the device. */
static bool is_active(CUdevice device)
{
    unsigned flags;
    int active = 0;
    return driver->cuDevicePrimaryCtxGetState && !driver->cuDevicePrimaryCtxGetState(device, &flags, &active) && active;
}

/* Where the program computes: a rank that has chosen its GPU does not want work of its on everybody's first. */
static int programs_own(int count)
{
    CUdevice device;
    int active = 0;
    for (int ordinal = count - 1; ordinal >= 0; ordinal--) {
        if (driver->cuDeviceGet(&device, ordinal)) continue;
        if (atomic_load(&noted) == device + 1) return ordinal;
        if (is_active(device)) active = ordinal;
    }
    return active;
}

static bool wanted(const char *list, int ordinal)
{
    if (*list == 'a') return true;      /* auto, until one is had; all */
    for (const char *at = list; *at; at += *at == ',') {
        char *end;
        if (strtol(at, &end, 10) == ordinal && end != at) return true;
        at = end;
    }
    return false;
}

/* A device in exclusive mode serves one process. If this one has no context there yet, it may be meant for a child or another process, which our
   context would lock out: only the user's word, a list or GPUBLAS_OFFLOAD=always, takes it. */
static bool is_free(CUdevice device, bool active, bool named)
{
    int mode = CU_COMPUTEMODE_DEFAULT;
    const CUresult result = driver->cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device);
    return result || mode == CU_COMPUTEMODE_DEFAULT || (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && (active || named));
}

/* Pools came with CUDA 11.2, and not to every device. */
static bool has_pool(CUdevice device)
{
    int there = 0;
    const CUresult result = driver->cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
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
    if (!result) result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&device->concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device->handle);
    if (!result) result = driver->cuDeviceGetAttribute(&device->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->handle);
    const bool active = !result && is_active(device->handle);
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
    /* Who has a context has plans for the memory, too. */
    int64_t asked = gpb_option_number(GPB_OPTION_MEMORY), most = active ? (int64_t)(bytes_free / 2) : (int64_t)(bytes_free / 5 * 4);
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
    atexit(leave);       /* after libcuda's own: it comes before them, */
    const char *list = device_list();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    const bool one = strcmp(list, "auto") == 0, named = *list != 'a' || gpb_option_number(GPB_OPTION_OFFLOAD) == GPB_OFFLOAD_ALWAYS;
    const int first = one && !result ? programs_own(count) : 0;
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
        turn_off(result ? gpb_driver_error(result) : "none of the GPUs in GPUBLAS_DEVICES can be used");
        return;
    }
    atexit(leave);       /* and those that came with the contexts */
    gpb_lanes_make(devices, device_count);
    atomic_store(&why, "");
    atomic_store(&state, ON);
    for (int i = 0; i < device_count; i++)
        gpb_log_debug("GPU %d: %s, sm_%d, %d SMs, budget %lld MiB", devices[i].ordinal, devices[i].name, devices[i].arch,
                      devices[i].sms, (long long)(devices[i].budget >> 20));
    gpb_log_debug("starting the GPU took %.0f ms", 1e3 * (gpb_clock_s() - begin_s));
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
double gpb_gpu_start_s(void) { return atomic_load(&expected_s); }
void gpb_gpu_occupy(bool now) { atomic_store(&occupied, now); }
bool gpb_gpu_forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed); }
bool gpb_gpu_leaving(void) { return atomic_load(&leaving); }
bool gpb_gpu_started(void) { return atomic_load_explicit(&state, memory_order_acquire) == ON; }
bool gpb_gpu_lost(void) { return !gpb_gpu_possible() && atomic_load_explicit(&present, memory_order_relaxed); }
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

/* How many kernels of the table run on the device; fd: where to say why each of the others does not, or -1. */
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
        if (result && fd >= 0) dprintf(fd, "               %s cannot run here: %s\n", kernel->name, gpb_driver_error(result));
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
        dprintf(fd, "GPU %-10d %s, sm_%d, %d SMs; uses up to %lld MiB of its memory\n", device->ordinal, device->name,
                device->arch, device->sms, (long long)(device->budget >> 20));
        const int running = count_kernels(device, all ? fd : -1);
        dprintf(fd, "               %d of %d kernels run there\n", running, gpb_kernel_count);
    }
}
