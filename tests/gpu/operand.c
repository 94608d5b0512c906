/* SPDX-License-Identifier: MIT */
/* See operand.h. Only entry points that src/service/driver.def lists as well are required. Managed memory,
   the device's pool and cuCtxGetCurrent may be missing. */
#include "tests/gpu/operand.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long address;
enum { OUT_OF_MEMORY = 2 };

static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuMemAlloc_v2)(address *, size_t);
    int (*cuMemFree_v2)(address);
    int (*cuMemGetInfo_v2)(size_t *, size_t *);
    int (*cuMemHostAlloc)(void **, size_t, unsigned);
    int (*cuMemFreeHost)(void *);
    int (*cuMemcpyHtoDAsync_v2)(address, const void *, size_t, void *);
    int (*cuMemcpyDtoHAsync_v2)(void *, address, size_t, void *);
    int (*cuStreamCreate)(void **, unsigned);
    int (*cuStreamSynchronize)(void *);
    int (*cuCtxGetCurrent)(void **);
    int (*cuMemAllocManaged)(address *, size_t, unsigned);
    int (*cuMemAllocAsync)(address *, size_t, void *);
    int (*cuMemFreeAsync)(address, void *);
} cuda;
static void *primary;
static _Thread_local void *stream;

const char *const place_names[PLACES] = { "pageable", "pinned", "device", "managed" };

static void must(int result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "%s: CUDA error %d\n", what, result);
    exit(1);
}
#define MUST(call) must(cuda.call, #call)

bool gpu_open(void)
{
    if (primary) return true;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "SKIPPED, no GPU: %s\n", dlerror());
        return false;
    }
#define NEED(name) if (!(cuda.name = (__typeof__(cuda.name))dlsym(library, #name))) must(-1, #name)
#define MAY(name) cuda.name = (__typeof__(cuda.name))dlsym(library, #name)
    NEED(cuInit); NEED(cuDeviceGet); NEED(cuDeviceGetAttribute); NEED(cuDevicePrimaryCtxRetain);
    NEED(cuCtxPushCurrent_v2);
    NEED(cuCtxPopCurrent_v2);
    NEED(cuMemAlloc_v2);
    NEED(cuMemFree_v2);
    NEED(cuMemGetInfo_v2);
    NEED(cuMemHostAlloc);
    NEED(cuMemFreeHost);
    NEED(cuMemcpyHtoDAsync_v2);
    NEED(cuMemcpyDtoHAsync_v2);
    NEED(cuStreamCreate);
    NEED(cuStreamSynchronize);
    MAY(cuCtxGetCurrent); MAY(cuMemAllocManaged); MAY(cuMemAllocAsync); MAY(cuMemFreeAsync);
    int device, error = cuda.cuInit(0);
    if (!error) error = cuda.cuDeviceGet(&device, 0);
    if (error) {
        fprintf(stderr, "SKIPPED, no GPU: CUDA error %d at the start\n", error);
        return false;
    }
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    gpu_make_current(true);
    return true;
}

int gpu_arch(void)
{
    enum { MAJOR = 75, MINOR = 76 };               /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_... */
    int major = 0, minor = 0;
    MUST(cuDeviceGetAttribute(&major, MAJOR, 0));
    MUST(cuDeviceGetAttribute(&minor, MINOR, 0));
    return 10 * major + minor;
}

void *gpu_current(void)
{
    void *context = NULL;
    if (cuda.cuCtxGetCurrent) MUST(cuCtxGetCurrent(&context));
    return context;
}

void gpu_make_current(bool current)
{
    void *popped;
    if (current) MUST(cuCtxPushCurrent_v2(primary));
    else MUST(cuCtxPopCurrent_v2(&popped));
}

void *device_take(size_t bytes)
{
    address at = 0;
    const int error = cuda.cuMemAlloc_v2(&at, bytes);
    if (error != OUT_OF_MEMORY) must(error, "cuMemAlloc");
    return error ? NULL : (void *)(uintptr_t)at;
}

void device_give(void *memory) { MUST(cuMemFree_v2((uintptr_t)memory)); }

size_t device_free(size_t *total)
{
    size_t bytes = 0;
    MUST(cuMemGetInfo_v2(&bytes, total));
    return bytes;
}

bool place_exists(enum place place) { return place != PLACE_MANAGED || cuda.cuMemAllocManaged; }

/* Memory whose last byte is the last before an unmapped page; base and length recovered by page
   arithmetic. */
static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t mapped(size_t bytes) { return (bytes + page() - 1) / page() * page() + page(); }

static void *guarded(size_t bytes)
{
    char *start = mmap(NULL, mapped(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + mapped(bytes) - page(), page(), PROT_NONE)) must(-1, "mmap");
    return start + mapped(bytes) - page() - bytes;
}

static void unguard(void *base, size_t bytes)
{
    munmap((char *)base + bytes + page() - mapped(bytes), mapped(bytes));
}

void crash_at_once(void)
{
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
}

static size_t bytes_of(const operand *o) { return (size_t)(o->offset + o->count) * gpb_type_bytes(o->type); }

/* An empty operand has room for one element. */
static size_t room_of(const operand *o)
{
    return (bytes_of(o) ? bytes_of(o) : gpb_type_bytes(o->type)) + (size_t)o->shift;
}

/* Every other operand on the device is in its pool, as cudaMallocAsync's memory is: no context owns it. */
static bool from_pool(address *at, size_t bytes)
{
    static atomic_uint made;
    int can = 0;
    enum { POOLS_SUPPORTED = 115 };
    if (!cuda.cuMemAllocAsync || !cuda.cuMemFreeAsync || atomic_fetch_add(&made, 1) % 2 == 0) return false;
    MUST(cuDeviceGetAttribute(&can, POOLS_SUPPORTED, 0));
    if (!can) return false;
    MUST(cuMemAllocAsync(at, bytes, NULL));
    MUST(cuStreamSynchronize(NULL));
    return true;
}

operand operand_make(enum place place, enum gpb_type type, int64_t count, int64_t offset)
{
    return operand_make_shifted(place, type, count, offset, 0);
}

operand operand_make_shifted(enum place place, enum gpb_type type, int64_t count, int64_t offset, int shift)
{
    crash_at_once();
    operand o = { .place = place, .type = type, .offset = offset, .count = count, .shift = shift };
    const size_t bytes = room_of(&o);
    address at = 0;
    switch (place) {
    case PLACE_PAGEABLE: o.base = guarded(bytes); break;
    case PLACE_PINNED: MUST(cuMemHostAlloc(&o.base, bytes, 0)); break;
    case PLACE_DEVICE:
        o.pooled = from_pool(&at, bytes);
        if (!o.pooled) MUST(cuMemAlloc_v2(&at, bytes));
        break;
    default: MUST(cuMemAllocManaged(&at, bytes, 1)); break;
    }
    if (at) o.base = (void *)(uintptr_t)at;
    o.base = (char *)o.base + shift;
    o.address = (char *)o.base + offset * (int64_t)gpb_type_bytes(type);
    o.image = malloc(bytes);
    if (!o.image) must(-1, "malloc");
    return o;
}

/* Device memory is reached by the driver alone; the rest is the host's too. Where another process holds all
   of it for a while, the driver may lack what it needs for itself. */
#define PATIENTLY(call) do { \
    int error; \
    for (int tries = 0; (error = cuda.call) == OUT_OF_MEMORY && tries < 1000; tries++) usleep(10000); \
    must(error, #call); \
} while (0)

void operand_put(operand *o)
{
    const size_t bytes = bytes_of(o);
    if (o->place != PLACE_DEVICE) memcpy(o->base, o->image, bytes);
    else if (bytes) {
        if (!stream) PATIENTLY(cuStreamCreate(&stream, 0));
        PATIENTLY(cuMemcpyHtoDAsync_v2((uintptr_t)o->base, o->image, bytes, stream));
        MUST(cuStreamSynchronize(stream));
    }
}

void operand_get(const operand *o, void *whole)
{
    const size_t bytes = bytes_of(o);
    if (o->place != PLACE_DEVICE) memcpy(whole, o->base, bytes);
    else if (bytes) {
        if (!stream) PATIENTLY(cuStreamCreate(&stream, 0));
        PATIENTLY(cuMemcpyDtoHAsync_v2(whole, (uintptr_t)o->base, bytes, stream));
        MUST(cuStreamSynchronize(stream));
    }
}

void operand_free(operand *o)
{
    void *allocation = (char *)o->base - o->shift;
    free(o->image);
    if (o->place == PLACE_PAGEABLE) unguard(allocation, room_of(o));
    else if (o->place == PLACE_PINNED) MUST(cuMemFreeHost(allocation));
    else if (o->pooled) MUST(cuMemFreeAsync((uintptr_t)allocation, NULL));
    else MUST(cuMemFree_v2((uintptr_t)allocation));
    *o = (operand){ 0 };
}
