/* SPDX-License-Identifier: MIT */
/* Devices, primary contexts, each thread's stack of contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fakecuda/fakecuda.h"

enum { STACK = 64 };
static struct CUctx_st primary[GPB_FAKE_DEVICES];
/* By cuCtxCreate; a destroyed one stays in the list, so that late use of it is seen. */
static CUcontext created;
static __thread CUcontext stack[STACK];
static __thread int depth;

CUcontext gpb_fake_current(void) { return depth ? stack[depth - 1] : NULL; }

static bool is_device(CUdevice device) { return device >= 0 && device < gpb_fake_options_get()->devices; }

static bool is_context(CUcontext context)
{
    for (CUcontext c = created; c; c = c->next)
        if (c == context)
            return true;
    return context >= primary && context < primary + GPB_FAKE_DEVICES;
}

static void start(CUcontext context, int device)
{
    static unsigned long long last_id;
    context->device = device;
    context->alive = true;
    context->id = ++last_id;
    if (!context->null_stream)
        context->null_stream = gpb_fake_stream_new(context, false);
}

static void stop(CUcontext context)
{
    gpb_fake_finish_context(context);
    gpb_fake_memory_release(context);
    gpb_fake_module_release(context);
    context->alive = false;
}

void gpb_fake_stale(const char *what)
{
    if (gpb_fake_options_get()->stale)
        gpb_fake_die("STALE HANDLE: %s of before a reset of the device", what);
}

/* All that the context had is gone, even in the middle of its work. Its references stay. */
static void reset(CUcontext context)
{
    gpb_fake_stream_reset(context);
    gpb_fake_memory_release(context);
    gpb_fake_memory_rewind();
    gpb_fake_module_reset(context);
    context->null_stream = NULL;
    context->alive = false;
}

CUresult cuInit(unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_NOTHING);
    if (gpb_fake_forked())
        return gpb_fake_leave(__func__, CUDA_ERROR_NOT_INITIALIZED);
    if (!r)
        r = flags                             ? CUDA_ERROR_INVALID_VALUE
            : gpb_fake_options_get()->devices ? CUDA_SUCCESS
                                              : CUDA_ERROR_NO_DEVICE;
    if (!r)
        gpb_fake_initialised();
    return gpb_fake_leave(__func__, r);
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_NOTHING);
    if (!r && !version)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *version = CUDA_VERSION;
    return gpb_fake_leave(__func__, r);
}

/* The few names that appear in tests and traces. */
static const char *error_name(CUresult error)
{
    switch (error) {
    case CUDA_SUCCESS: return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE: return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_OUT_OF_MEMORY: return "CUDA_ERROR_OUT_OF_MEMORY";
    case CUDA_ERROR_NOT_INITIALIZED: return "CUDA_ERROR_NOT_INITIALIZED";
    case CUDA_ERROR_DEINITIALIZED: return "CUDA_ERROR_DEINITIALIZED";
    case CUDA_ERROR_NO_DEVICE: return "CUDA_ERROR_NO_DEVICE";
    case CUDA_ERROR_INVALID_DEVICE: return "CUDA_ERROR_INVALID_DEVICE";
    case CUDA_ERROR_INVALID_IMAGE: return "CUDA_ERROR_INVALID_IMAGE";
    case CUDA_ERROR_INVALID_CONTEXT: return "CUDA_ERROR_INVALID_CONTEXT";
    case CUDA_ERROR_NO_BINARY_FOR_GPU: return "CUDA_ERROR_NO_BINARY_FOR_GPU";
    case CUDA_ERROR_ECC_UNCORRECTABLE: return "CUDA_ERROR_ECC_UNCORRECTABLE";
    case CUDA_ERROR_INVALID_HANDLE: return "CUDA_ERROR_INVALID_HANDLE";
    case CUDA_ERROR_NOT_FOUND: return "CUDA_ERROR_NOT_FOUND";
    case CUDA_ERROR_NOT_READY: return "CUDA_ERROR_NOT_READY";
    case CUDA_ERROR_ILLEGAL_ADDRESS: return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case CUDA_ERROR_LAUNCH_TIMEOUT: return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return "CUDA_ERROR_CONTEXT_IS_DESTROYED";
    case CUDA_ERROR_LAUNCH_FAILED: return "CUDA_ERROR_LAUNCH_FAILED";
    case CUDA_ERROR_UNKNOWN: return "CUDA_ERROR_UNKNOWN";
    default: return NULL;
    }
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_NOTHING);
    if (!r)
        r = (*name = error_name(error)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return gpb_fake_leave(__func__, r);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r)
        *count = gpb_fake_options_get()->devices;
    else if (!gpb_fake_forked() && !gpb_fake_options_get()->devices)
        r = CUDA_ERROR_NO_DEVICE;
    return gpb_fake_leave(__func__, r);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(ordinal))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *device = ordinal;
    return gpb_fake_leave(__func__, r);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        snprintf(name, (size_t)length, "fakecuda sm_%d", gpb_fake_options_get()->arch);
    return gpb_fake_leave(__func__, r);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *bytes = gpb_fake_options_get()->memory;
    return gpb_fake_leave(__func__, r);
}

/* CUDA programming guide, table of compute capabilities. */
int gpb_fake_opt_in_bytes(void)
{
    int arch = gpb_fake_options_get()->arch;
    return (arch < 80 ? 64 : arch == 80 || arch == 87 ? 163 : arch < 90 ? 99 : arch < 120 ? 227 : 99) << 10;
}

static int attribute_value(CUdevice_attribute attribute)
{
    int arch = gpb_fake_options_get()->arch;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return arch / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return arch % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return GPB_FAKE_SMS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: return gpb_fake_options_get()->mode;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return gpb_fake_opt_in_bytes();
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1980000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 3201000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 6144;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: return 1;
    default: return 0;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r && (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *value = attribute_value(attribute);
    return gpb_fake_leave(__func__, r);
}

/* Outside the lock, because other calls go on meanwhile. */
static void take_time(void)
{
    const int ms = gpb_fake_options_get()->start_ms;
    if (ms)
        nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (is_device(device) && !primary[device].alive)
        take_time();
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r && gpb_fake_options_get()->mode == CU_COMPUTEMODE_PROHIBITED)
        r = CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (!r) {
        *context = &primary[device];
        (*context)->primary = true;
        (*context)->references++;
        if (!(*context)->alive)
            start(*context, device);
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    else if (!r && !primary[device].references)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && --primary[device].references == 0 && primary[device].alive)
        stop(&primary[device]);
    return gpb_fake_leave(__func__, r);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r && primary[device].alive)
        reset(&primary[device]);
    return gpb_fake_leave(__func__, r);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !is_device(device))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r) {
        *flags = 0;
        *active = primary[device].alive;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    context = context ? context : gpb_fake_current();
    if (!r && !is_context(context))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && !context->alive)
        r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!r)
        *id = context->id;
    return gpb_fake_leave(__func__, r);
}

static CUresult push(CUcontext context)
{
    if (!is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    /* A primary context that was reset may be pushed: driver 580, H200. */
    if (!context->alive && !context->primary)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (depth == STACK)
        gpb_fake_die("CONTEXT STACK: %d pushes without a pop", STACK);
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r)
        r = push(context);
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && !depth)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r) {
        depth--;
        if (context)
            *context = stack[depth];
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && context && !is_context(context))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r) {
        depth -= depth > 0;
        if (context)
            r = push(context);
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r)
        *context = gpb_fake_current();
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        *device = gpb_fake_current()->device;
    return gpb_fake_leave(__func__, r);
}

static CUresult create(CUcontext *context, CUdevice device)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!(*context = calloc(1, sizeof **context)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*context)->next = created;
    created = *context;
    start(*context, device);
    return push(*context);
}

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
#else
CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
#endif
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    (void)flags;
#if CUDA_VERSION >= 13000
    (void)parameters;
#endif
    if (!r)
        r = create(context, device);
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxDestroy(CUcontext context)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && (!is_context(context) || context->primary || !context->alive))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r) {
        stop(context);
        if (gpb_fake_current() == context)
            depth--;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuCtxSynchronize(void)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        gpb_fake_finish_context(gpb_fake_current());
    return gpb_fake_leave(__func__, r);
}
