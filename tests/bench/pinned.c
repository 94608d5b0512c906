/* SPDX-License-Identifier: MIT */
/* Page-locked memory that the library asks the driver for, counted from outside. The library finds libcuda's
   functions by dlsym, and it finds this program's dlsym first. Bytes are only ever added up, so a library
   that frees memory and asks again is found out, too. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worker.h"

static atomic_size_t bytes_asked;
static int (*host_alloc)(void **, size_t, unsigned);
static int (*alloc_host)(void **, size_t);
static int (*host_register)(void *, size_t, unsigned);

size_t pinned_bytes(void) { return bytes_asked; }

static int counted_host_alloc(void **at, size_t bytes, unsigned flags)
{
    bytes_asked += bytes;
    return host_alloc(at, bytes, flags);
}

static int counted_alloc_host(void **at, size_t bytes)
{
    bytes_asked += bytes;
    return alloc_host(at, bytes);
}

static int counted_host_register(void *at, size_t bytes, unsigned flags)
{
    bytes_asked += bytes;
    return host_register(at, bytes, flags);
}

typedef void *look_up(void *, const char *);
static look_up *libc_dlsym;

static void *counted(look_up *real, void *handle, const char *name)
{
    void *address = real(handle, name);
    if (!address) return NULL;
    if (!strcmp(name, "cuMemHostAlloc")) {
        host_alloc = (__typeof__(host_alloc))address;
        return (void *)counted_host_alloc;
    }
    if (!strcmp(name, "cuMemAllocHost_v2")) {
        alloc_host = (__typeof__(alloc_host))address;
        return (void *)counted_alloc_host;
    }
    host_register = (__typeof__(host_register))address;
    return (void *)counted_host_register;
}

/* All other names by a jump, not a call: RTLD_NEXT goes by the return address. */
__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    if (!libc_dlsym) libc_dlsym = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!strcmp(name, "cuMemHostAlloc") || !strcmp(name, "cuMemAllocHost_v2")
        || !strcmp(name, "cuMemHostRegister_v2"))
        return counted(libc_dlsym, handle, name);
    return libc_dlsym(handle, name);
}
