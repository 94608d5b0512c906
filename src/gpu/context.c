/* SPDX-License-Identifier: MIT */
/* The devices' primary contexts. The program shares them and may reset one: cudaDeviceReset does, which
   numba's cuda.close() and test suites call. A reset destroys everything that was made in the context, but
   the handle stays the same. Using what was destroyed crashes inside the driver (an H200, driver 580:
   SIGSEGV). So every call first asks whether the context is still the one that our streams and memory were
   made in. */
#include "src/gpu/context.h"

#include <pthread.h>

#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/gpu/lanes.h"
#include "src/service/log.h"
#include "src/service/thread.h"

static pthread_mutex_t renewal = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside;  /* calls of gpb_context_enter that no gpb_context_exit has ended yet */
static atomic_bool let_go;
enum { LAST_STACK = 256 << 10 };

/* ---- the end: a GPU that is given up holds no resources of the machine. A thread of its own frees them,
   because a driver in distress may take its time. */

static void *give_back(void *unused)
{
    gpb_lanes_let_go();
    return unused;
}

/* Acts once no thread is inside, none can enter any more, and no call has a lane. A program that is ending
   leaves the cleanup to the driver. */
void gpb_context_let_go(void)
{
    if (gpb_gpu_possible() || atomic_load(&inside) || gpb_gpu_forked() || gpb_gpu_leaving()
        || atomic_exchange(&let_go, true))
        return;
    gpb_thread_begin(give_back, LAST_STACK);
}

static void leave(void)
{
    if (atomic_fetch_sub(&inside, 1) == 1) gpb_context_let_go();
}

static void pop(void)
{
    CUcontext popped;
    gpb_driver_get()->cuCtxPopCurrent(&popped);
}

/* ---- is it the same context? */

/* The identity of a context that was destroyed before it could be asked: no context has it. */
#define DESTROYED UINT64_MAX

static bool is_gone(CUresult result)
{
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
}

/* The number of an allocation, never the same twice in a process. 0: the driver knows no allocation there. */
static uint64_t buffer_id(CUdeviceptr at)
{
    unsigned long long id = 0;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    void *value = &id;
    return gpb_driver_get()->cuPointerGetAttributes(1, &attribute, &value, at) ? 0 : id;
}

/* Drivers before CUDA 12 do not number contexts. There a few bytes of the context's memory tell: the
   canary. */
static bool canary_lives(const gpb_device *device)
{
    const gpb_driver *driver = gpb_driver_get();
    const CUdeviceptr canary = atomic_load(&device->canary);
    unsigned flags;
    int active;
    if (driver->cuDevicePrimaryCtxGetState
        && !driver->cuDevicePrimaryCtxGetState(device->handle, &flags, &active) && !active)
        return false;
    return !canary || buffer_id(canary) == atomic_load(&device->id);
}

#if CUDA_VERSION >= 12000
static bool number_of(CUcontext context, unsigned long long *number, CUresult *result)
{
    const gpb_driver *driver = gpb_driver_get();
    *result = driver->cuCtxGetId ? driver->cuCtxGetId(context, number) : CUDA_ERROR_NOT_SUPPORTED;
    return *result == CUDA_SUCCESS;
}
#else
static bool number_of(CUcontext context, unsigned long long *number, CUresult *result)
{
    (void)context;
    (void)number;
    *result = CUDA_ERROR_NOT_SUPPORTED;
    return false;
}
#endif

/* If the driver fails to answer, it has some other trouble, which its next call will report. */
bool gpb_context_same(const gpb_device *device)
{
    unsigned long long number = 0;
    CUresult result;
    if (atomic_load(&device->id) == DESTROYED) return false;
    if (atomic_load(&device->canary)) return canary_lives(device);
    if (!atomic_load(&device->id)) return true;
    if (number_of(device->context, &number, &result)) return number == atomic_load(&device->id);
    return !is_gone(result);
}

/* ---- making it anew */

/* Stores the identity of the context, which is current. The program may reset it meanwhile. Were it then
   taken for one without identity, no later reset would be noticed, and the GPU would be given up. */
static CUresult identify(gpb_device *device)
{
    unsigned long long number = 0;
    CUdeviceptr canary = 0;
    CUresult result;
    if (!number_of(device->context, &number, &result) && !is_gone(result)) {
        result = gpb_driver_get()->cuMemAlloc(&canary, sizeof(uint32_t));
        if (result) canary = 0;
        number = canary ? buffer_id(canary) : 0;
    }
    atomic_store(&device->canary, canary);
    atomic_store(&device->id, is_gone(result) ? DESTROYED : number);
    return is_gone(result) ? result : CUDA_SUCCESS;
}

void gpb_context_identify(gpb_device *device)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    if (!gpb_driver_get()->cuCtxPushCurrent(device->context)) {
        identify(device);
        pop();
    }
    gpb_driver_capture_mode(&mode);
}

/* Under `renewal`. Retaining the context once more brings it to life, and it need not be known whether the
   reset dropped our reference. The new identity is stored last, so no other thread takes the new context for
   a finished one before that. */
static CUresult renew(gpb_device *device)
{
    const gpb_driver *driver = gpb_driver_get();
    CUcontext context = NULL;
    CUresult result = driver->cuDevicePrimaryCtxRetain(&context, device->handle);
    if (result) return result;
    if (context != device->context) device->context = context;
    gpb_kernels_forget(device);
    gpb_lanes_forget(device);
    result = driver->cuCtxPushCurrent(context);
    if (result) return result;
    result = identify(device);
    pop();
    if (result) return result;
    gpb_log_debug("GPU %d was reset by the program; everything the library had there is created again",
                  device->ordinal);
    return result;
}

static CUresult renew_once(gpb_device *device)
{
    CUresult result = CUDA_SUCCESS;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    pthread_mutex_lock(&renewal);
    if (!gpb_context_same(device)) result = renew(device);
    pthread_mutex_unlock(&renewal);
    gpb_driver_capture_mode(&mode);
    return result;
}

/* The program may reset the device again between the check and the push. */
static CUresult push(gpb_device *device)
{
    enum { TRIES = 4 };
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < TRIES && (i == 0 || is_gone(result)); i++) {
        result = gpb_context_same(device) ? CUDA_SUCCESS : renew_once(device);
        if (!result) result = gpb_driver_get()->cuCtxPushCurrent(device->context);
    }
    return result;
}

CUresult gpb_context_enter(gpb_device *device)
{
    atomic_fetch_add(&inside, 1);
    const CUresult result = gpb_gpu_started() ? push(device) : CUDA_ERROR_NOT_PERMITTED;
    if (result) leave();
    return result;
}

void gpb_context_exit(void)
{
    pop();
    leave();
}

bool gpb_context_records_graph(void)
{
    const gpb_driver *driver = gpb_driver_get();
    CUstreamCaptureStatus status;
    return driver->cuStreamIsCapturing
           && driver->cuStreamIsCapturing(CU_STREAM_LEGACY, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* A context that is gone is no failure of the GPU. The program has reset it, and the next call makes it anew.
   But one that stays gone costs each call a failed run, so after some of them the GPU is given up. In a
   program that resets its GPU other errors are treated alike, because a call may fail of a reset that another
   thread has noticed and mended since. */
void gpb_lanes_failed(const gpb_lane *lane, CUresult result)
{
    enum { PATIENCE = 16 };
    static atomic_int gone;
    const bool ours = lane->life == lane->device->life && gpb_context_same(lane->device);
    if (!gpb_driver_sticky(result) || !ours) return;
    const bool resets = is_gone(result) || lane->device->life > 0;
    if (resets && atomic_fetch_add(&gone, 1) < PATIENCE) return;
    gpb_gpu_give_up(gpb_driver_error(result));
}
