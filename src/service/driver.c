/* SPDX-License-Identifier: MIT */
/* Opens libcuda. cuda.h renames functions (cuMemAlloc is cuMemAlloc_v2), so GPB_STR makes the names from what
   cuda.h expands them to. */
#include "src/service/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "kernels/names.h"
#include "src/service/linker.h"

static gpb_driver driver;
static const char *missing = "no libcuda.so.1, the library of NVIDIA's driver";
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *find_entries(void *handle)
{
    static const struct { const char *name; size_t place; int needed; } entries[] = {
#define DRIVER(function) { GPB_STR(function), offsetof(gpb_driver, function), 1 },
#define OPTIONAL(function) { GPB_STR(function), offsetof(gpb_driver, function), 0 },
#include "src/service/driver.def"
#undef OPTIONAL
#undef DRIVER
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(handle, entries[i].name);
        *(void **)((char *)&driver + entries[i].place) = address;
        if (!address && entries[i].needed) return "libcuda.so.1 is too old";
    }
    return NULL;
}

static void open_once(void)
{
    if (gpb_linker_spoiled()) {
        missing = "forked while libraries were being opened";
        return;
    }
    const int cancel = gpb_linker_enter();
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle) missing = find_entries(handle);
    gpb_linker_leave(cancel);
}

void gpb_driver_pass_linker(void)
{
    const int cancel = gpb_linker_enter();
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (program) dlclose(program);
    gpb_linker_leave(cancel);
}

const gpb_driver *gpb_driver_get(void)
{
    pthread_once(&once, open_once);
    return missing ? NULL : &driver;
}

const gpb_driver *gpb_driver_open(const char **why)
{
    const gpb_driver *opened = gpb_driver_get();
    *why = missing;
    return opened;
}

void gpb_driver_capture_mode(CUstreamCaptureMode *mode)
{
    if (driver.cuThreadExchangeStreamCaptureMode) driver.cuThreadExchangeStreamCaptureMode(mode);
}

const char *gpb_driver_error(CUresult result)
{
    const char *name = NULL;
    if (missing || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) return "unknown CUDA error";
    return name;
}

bool gpb_driver_sticky(CUresult result)
{
    switch ((int)result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}
