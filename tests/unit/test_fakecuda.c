/* SPDX-License-Identifier: MIT */
/* The promises of tests/fakecuda: initialisation, contexts, memory, copies, failures, the log. Kernels and
   order have files of their own. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fakecuda/child.h"

static int no_init(void)
{
    int count, version;
    CUdeviceptr at;
    CUcontext context;
    EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuMemAlloc(&at, 16) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= 12000);
    EXPECT(cuInit(0) == CUDA_SUCCESS);
    EXPECT(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 1);
    EXPECT(cuMemAlloc(&at, 16) == CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxGetCurrent(&context) == CUDA_SUCCESS && !context);
    EXPECT(cuCtxPopCurrent(&context) == CUDA_ERROR_INVALID_CONTEXT);
    return GPB_CHILD_OK;
}

static int no_device(void)
{
    int count = -1;
    EXPECT(cuInit(0) == CUDA_ERROR_NO_DEVICE);
    EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NO_DEVICE);
    return GPB_CHILD_OK;
}

static void test_init(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(no_init, NULL), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(no_device, (const char *[]){ "FAKECUDA_DEVICES", "0", NULL }),
                     GPB_CHILD_OK);
}

static int after_fork(void)
{
    int count;
    CUdeviceptr at;
    CUcontext context;
    EXPECT(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuMemAlloc(&at, 16) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED);
    return GPB_CHILD_OK;
}

static int forks(void)
{
    gpb_child_start();
    EXPECT(gpb_child_run(after_fork, NULL) == GPB_CHILD_OK);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

/* A reset destroys everything. The context comes back under the same handle with another number, and its
   memory at the same addresses. */
static int resets(void)
{
    CUcontext context = gpb_child_start(), again;
    CUstream stream, later;
    CUevent event;
    CUdeviceptr at = 0, next = 0;
    char own[64];
    unsigned flags;
    int active;
    unsigned long long before = 0, after = 0;
    EXPECT(cuStreamCreate(&stream, 0) == CUDA_SUCCESS && cuEventCreate(&event, 0) == CUDA_SUCCESS
           && cuMemAlloc(&at, 64) == CUDA_SUCCESS);
    EXPECT(cuMemHostRegister(own, sizeof own, 0) == CUDA_SUCCESS
           && cuCtxGetId(NULL, &before) == CUDA_SUCCESS);
    EXPECT(cuMemHostRegister(own, sizeof own, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(cuMemcpyDtoHAsync(own, at, sizeof own, stream) == CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS
           && cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && !active);
    EXPECT(cuMemAlloc(&next, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED
           && cuCtxGetId(context, &after) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS && again == context);
    EXPECT(cuCtxGetId(NULL, &after) == CUDA_SUCCESS && after != before);
    EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE
           && cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamCreate(&later, 0) == CUDA_SUCCESS && later != stream
           && cuMemAlloc(&next, 64) == CUDA_SUCCESS && next == at);
    EXPECT(cuMemHostUnregister(own) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
           && cuMemHostRegister(own, sizeof own, 0) == CUDA_SUCCESS);
    EXPECT(cuMemFreeHost(own) == CUDA_ERROR_INVALID_VALUE && cuMemHostUnregister(own) == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int stale(void)
{
    CUcontext context = gpb_child_start();
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, 0) == CUDA_SUCCESS && cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    cuStreamSynchronize(stream);
    return GPB_CHILD_OK;
}

static void test_reset(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(resets, NULL), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(stale, (const char *[]){ "FAKECUDA_STALE", "1", NULL }), 86);
}

static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(forks, NULL), GPB_CHILD_OK);
}

static void *sees_no_context(void *seen)
{
    CUcontext context = NULL;
    *(bool *)seen = cuCtxGetCurrent(&context) == CUDA_SUCCESS && !context
                    && cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT;
    return NULL;
}

static int contexts(void)
{
    CUcontext first = gpb_child_start(), second, again, own, seen;
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1) == CUDA_SUCCESS && second != first);
    EXPECT(cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS && again == first);
    EXPECT(cuDevicePrimaryCtxRetain(&again, 2) == CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuCtxPushCurrent(second) == CUDA_SUCCESS);
    EXPECT(cuCtxGetCurrent(&seen) == CUDA_SUCCESS && seen == second);
    bool right = false;
    pthread_t thread;
    EXPECT(!pthread_create(&thread, NULL, sees_no_context, &right) && !pthread_join(thread, NULL) && right);
    EXPECT(cuCtxPopCurrent(&seen) == CUDA_SUCCESS && seen == second);
    EXPECT(cuCtxGetCurrent(&seen) == CUDA_SUCCESS && seen == first);
    EXPECT(cuCtxSetCurrent(second) == CUDA_SUCCESS && cuCtxPopCurrent(NULL) == CUDA_SUCCESS);
    EXPECT(cuCtxGetCurrent(&seen) == CUDA_SUCCESS && !seen);
    EXPECT(cuCtxPushCurrent((CUcontext)&seen) == CUDA_ERROR_INVALID_CONTEXT);
#if CUDA_VERSION >= 13000
    EXPECT(cuCtxCreate(&own, NULL, 0, 0) == CUDA_SUCCESS);
#else
    EXPECT(cuCtxCreate(&own, 0, 0) == CUDA_SUCCESS);
#endif
    EXPECT(cuCtxGetCurrent(&seen) == CUDA_SUCCESS && seen == own && own != first);
    EXPECT(cuCtxDestroy(own) == CUDA_SUCCESS && cuCtxPushCurrent(own) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS && cuCtxPushCurrent(first) == CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS
           && cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
    return GPB_CHILD_OK;
}

static void test_contexts(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(contexts, (const char *[]){ "FAKECUDA_DEVICES", "2", NULL }),
                     GPB_CHILD_OK);
}

static bool is_poison(const unsigned char *x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != 0xFF)
            return false;
    return true;
}

/* The operating system decides, so that no sanitizer sees a fault. */
static bool host_can_read(CUdeviceptr at)
{
    int ends[2];
    EXPECT(!pipe(ends));
    bool can = write(ends[1], (const void *)at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static int memory(void)
{
    enum { BIG = 5 << 20 };              /* more than one piece of poison */
    size_t left, total;
    CUdeviceptr too_much, managed;
    gpb_child_start();
    EXPECT(cuDeviceTotalMem(&total, 0) == CUDA_SUCCESS && total == 8 << 20);
    EXPECT(cuMemAlloc(&too_much, (8 << 20) + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr big = gpb_child_device(BIG), small = gpb_child_device(1000);
    EXPECT(big % 256 == 0 && small % 256 == 0);
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_SUCCESS && total == 8 << 20 && left == (8 << 20) - BIG - 1024);
    EXPECT(cuMemAlloc(&too_much, BIG) == CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(!host_can_read(big) && !host_can_read(small));
    unsigned char *pinned = gpb_child_pinned(BIG), *pageable = malloc(BIG);
    EXPECT(is_poison(pinned, BIG));
    memset(pinned, 0, BIG);
    EXPECT(cuMemcpyDtoH(pinned, big, BIG) == CUDA_SUCCESS && is_poison(pinned, BIG));
    EXPECT(cuMemsetD8(big, 7, BIG) == CUDA_SUCCESS && cuMemcpyDtoH(pageable, big, BIG) == CUDA_SUCCESS);
    EXPECT(pageable[0] == 7 && !memcmp(pageable, pageable + 1, BIG - 1));
    EXPECT(cuMemcpyDtoH(pageable, small, 1000) == CUDA_SUCCESS && is_poison(pageable, 1000));
    EXPECT(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS && host_can_read(managed));
    *(char *)managed = 5;
    EXPECT(cuMemcpyDtoH(pageable, managed, 1) == CUDA_SUCCESS && pageable[0] == 5);
    EXPECT(cuMemFree(managed) == CUDA_SUCCESS && cuMemFree(big) == CUDA_SUCCESS
           && cuMemFreeHost(pinned) == CUDA_SUCCESS);
    EXPECT(cuMemFree(small + 256) == CUDA_ERROR_INVALID_VALUE && cuMemFree(big) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_SUCCESS && left == (8 << 20) - 1024);
    EXPECT(gpb_child_device(BIG) != big);      /* a stale address finds nothing */
    free(pageable);
    return GPB_CHILD_OK;
}

static int copy_past_end(void)
{
    char bytes[101] = { 0 };
    gpb_child_start();
    return cuMemcpyHtoD(gpb_child_device(100), bytes, 101) == CUDA_SUCCESS ? GPB_CHILD_OK : GPB_CHILD_BROKEN;
}

static int copy_past_pinned(void)
{
    gpb_child_start();
    return cuMemcpyDtoH(gpb_child_pinned(100), gpb_child_device(200), 101) == CUDA_SUCCESS ? GPB_CHILD_OK
                                                                                           : GPB_CHILD_BROKEN;
}

static int copy_after_free(void)
{
    char byte = 0;
    gpb_child_start();
    CUdeviceptr at = gpb_child_device(100);
    EXPECT(cuMemFree(at) == CUDA_SUCCESS);
    return cuMemcpyHtoD(at, &byte, 1) == CUDA_SUCCESS ? GPB_CHILD_OK : GPB_CHILD_BROKEN;
}

static int set_past_end(void)
{
    gpb_child_start();
    EXPECT(cuMemsetD8(gpb_child_device(100), 0, 101) == CUDA_SUCCESS);
    return cuCtxSynchronize() == CUDA_SUCCESS ? GPB_CHILD_OK : GPB_CHILD_BROKEN;
}

/* The program writes beyond pinned memory. That is found at once if the memory fills its pages, otherwise
   when it is freed. */
static int beyond_pinned(size_t bytes)
{
    signal(SIGSEGV, SIG_DFL);
    gpb_child_start();
    volatile char *pinned = gpb_child_pinned(bytes);
    pinned[bytes] = 1;
    cuMemFreeHost((void *)(uintptr_t)pinned);
    return GPB_CHILD_OK;
}

static int beyond_pages(void) { return beyond_pinned(5 << 20); }
static int beyond_bytes(void) { return beyond_pinned(100); }

static void test_beyond_pinned(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(beyond_pages, NULL), 128 + SIGSEGV);
    assert_int_equal(gpb_child_run(beyond_bytes, NULL), 86);
}

static void test_memory(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(memory, (const char *[]){ "FAKECUDA_MEMORY", "8M", NULL }), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(copy_past_end, NULL), 86);
    assert_int_equal(gpb_child_run(copy_past_pinned, NULL), 86);
    assert_int_equal(gpb_child_run(copy_after_free, NULL), 86);
    assert_int_equal(gpb_child_run(set_past_end, NULL), 86);
}

typedef struct pointer_facts {
    unsigned type, managed;
    int device;
    CUdeviceptr at;
} pointer_facts;

static pointer_facts facts_of(CUdeviceptr at)
{
    pointer_facts f = { 9, 9, 9, 9 };
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER };
    void *out[] = { &f.type, &f.managed, &f.device, &f.at };
    EXPECT(cuPointerGetAttributes(4, which, out, at) == CUDA_SUCCESS);
    return f;
}

static int pointers(void)
{
    CUcontext second;
    CUdeviceptr managed;
    pointer_facts f;
    gpb_child_start();
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1) == CUDA_SUCCESS && cuCtxPushCurrent(second) == CUDA_SUCCESS);
    CUdeviceptr device = gpb_child_device(100), pinned = (CUdeviceptr)gpb_child_pinned(100);
    EXPECT(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    EXPECT(cuCtxPopCurrent(NULL) == CUDA_SUCCESS);
    f = facts_of(device + 99);
    EXPECT(f.type == CU_MEMORYTYPE_DEVICE && !f.managed && f.device == 1 && f.at == device + 99);
    f = facts_of(pinned);
    EXPECT(f.type == CU_MEMORYTYPE_HOST && !f.managed && f.device == 1 && f.at == pinned);
    f = facts_of(managed);
    EXPECT(f.type == CU_MEMORYTYPE_DEVICE && f.managed == 1 && f.device == 1 && f.at == managed);
    f = facts_of((CUdeviceptr)&f);
    EXPECT(!f.type && !f.managed && f.device == CU_DEVICE_INVALID && !f.at);
    f = facts_of(device + 100);
    EXPECT(!f.type && !f.at);
    return GPB_CHILD_OK;
}

static void test_pointers(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(pointers, (const char *[]){ "FAKECUDA_DEVICES", "2", NULL }),
                     GPB_CHILD_OK);
}

static int copies_2d(void)
{
    enum { ROWS = 5, PITCH = 16, WIDTH = 7 };
    gpb_child_start();
    unsigned char *from = gpb_child_pinned(ROWS * PITCH), *to = gpb_child_pinned(ROWS * PITCH);
    /* Not a byte more than the copy may touch. */
    CUdeviceptr device = gpb_child_device((ROWS - 1) * 8 + WIDTH);
    for (int i = 0; i < ROWS * PITCH; i++)
        from[i] = (unsigned char)i;
    CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = PITCH,
                         .srcXInBytes = 2, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device,
                         .dstPitch = 8, .WidthInBytes = WIDTH, .Height = ROWS };
    CUDA_MEMCPY2D out = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = device, .srcPitch = 8,
                          .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .dstPitch = PITCH,
                          .dstXInBytes = 1, .WidthInBytes = WIDTH, .Height = ROWS };
    EXPECT(cuMemcpy2DAsync(&in, NULL) == CUDA_SUCCESS && cuMemcpy2DAsync(&out, NULL) == CUDA_SUCCESS);
    EXPECT(to[1] == 0xFF);                                                /* not yet */
    EXPECT(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    for (int i = 0; i < ROWS * PITCH; i++) {
        int column = i % PITCH - 1;
        EXPECT(to[i] == (column >= 0 && column < WIDTH ? from[i + 1] : 0xFF));
    }
    in.dstPitch = WIDTH - 1;
    EXPECT(cuMemcpy2DAsync(&in, NULL) == CUDA_ERROR_INVALID_VALUE);
    in.dstPitch = 8;
    in.srcPitch = 1ull << 31;
    EXPECT(cuMemcpy2DAsync(&in, NULL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoDAsync(device, (void *)device, 1, NULL) == CUDA_ERROR_INVALID_VALUE);
    return GPB_CHILD_OK;
}

static void test_copies_2d(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(copies_2d, NULL), GPB_CHILD_OK);
}

static int fails(void)
{
    CUdeviceptr at;
    CUcontext context;
    size_t left, total;
    gpb_child_start();
    EXPECT(cuMemAlloc(&at, 16) == CUDA_ERROR_OUT_OF_MEMORY
           && cuMemAlloc(&at, 16) == CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_SUCCESS);
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED
           && cuMemGetInfo(&left, &total) == CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuCtxPopCurrent(&context) == CUDA_SUCCESS);  /* touches no device, so it still works */
    return GPB_CHILD_OK;
}

static int fails_from_then_on(void)
{
    CUdeviceptr at;
    size_t left, total;
    gpb_child_start();                                                    /* three calls of "any" */
    EXPECT(cuMemGetInfo(&left, &total) == CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&at, 16) == CUDA_ERROR_NOT_SUPPORTED && cuMemGetInfo(&left, &total) == CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&at, 16) == CUDA_SUCCESS && cuMemFree(at) == CUDA_ERROR_OUT_OF_MEMORY
           && cuMemFree(at) == CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuCtxSynchronize() == CUDA_ERROR_UNKNOWN && cuMemGetInfo(&left, &total) == CUDA_ERROR_UNKNOWN);
    return GPB_CHILD_OK;
}

static int never_gets_here(void) { return cuInit(0) == CUDA_SUCCESS ? GPB_CHILD_OK : GPB_CHILD_BROKEN; }

static void test_failures(void **state)
{
    (void)state;
    const char *rules[] = { "FAKECUDA_FAIL", "cuMemAlloc:*:2,cuMemGetInfo:2:701,cuCtxSynchronize:2:719",
                            NULL };
    assert_int_equal(gpb_child_run(fails, rules), GPB_CHILD_OK);
    const char *lasting[] = { "FAKECUDA_FAIL", "any:5:801,cuMemFree:1+:2,cuCtxSynchronize:1:999!", NULL };
    assert_int_equal(gpb_child_run(fails_from_then_on, lasting), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(never_gets_here,
                                   (const char *[]){ "FAKECUDA_FAIL", "cuMemAloc:1:2", NULL }),
                     86);
    assert_int_equal(gpb_child_run(never_gets_here,
                                   (const char *[]){ "FAKECUDA_FAIL", "cuMemAlloc:1:2x", NULL }),
                     86);
    assert_int_equal(gpb_child_run(never_gets_here,
                                   (const char *[]){ "FAKECUDA_FAIL", "cuMemAlloc:2", NULL }),
                     86);
}

static void test_log(void **state)
{
    (void)state;
    char path[] = "/tmp/test_fakecuda.XXXXXX", text[4096] = "";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(gpb_child_run(no_init, (const char *[]){ "FAKECUDA_LOG", path, NULL }), GPB_CHILD_OK);
    assert_true(read(file, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "cuMemAlloc thread="));
    assert_non_null(strstr(text, " result=201\n"));
    assert_null(strstr(text, "kernel "));  /* none was launched here; test_fakecuda_kernels.c launches some */
    close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init), cmocka_unit_test(test_reset),
        cmocka_unit_test(test_fork), cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_beyond_pinned),
        cmocka_unit_test(test_pointers), cmocka_unit_test(test_copies_2d),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
