/* SPDX-License-Identifier: MIT */
/* Device memory by the driver, for programs that are not linked with it. */
#ifndef DEVICE_H
#define DEVICE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

static int (*device_copy_to)(unsigned long long, const void *, size_t);
static int (*device_copy_from)(void *, unsigned long long, size_t);
static int (*device_alloc)(void *, size_t), (*device_free)(unsigned long long);

static void *device_function(const char *name)
{
    static void *cuda;
    if (!cuda) cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = cuda ? dlsym(cuda, name) : NULL;
    if (!function) exit(101);
    return function;
}

static void device_enter(void)
{
    int (*init)(unsigned) = device_function("cuInit");
    int (*retain)(void **, int) = device_function("cuDevicePrimaryCtxRetain");
    int (*enter)(void *) = device_function("cuCtxSetCurrent");
    void *context;
    device_copy_to = device_function("cuMemcpyHtoD_v2");
    device_copy_from = device_function("cuMemcpyDtoH_v2");
    device_alloc = device_function("cuMemAlloc_v2");
    device_free = device_function("cuMemFree_v2");
    if (init(0) || retain(&context, 0) || enter(context)) exit(102);
}

#endif
