/* SPDX-License-Identifier: MIT */
/* Order in tests/fakecuda. What CUDA promises holds for every seed; what it does not promise goes wrong
   for some seed. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fakecuda/child.h"

enum { SEEDS = 40, BYTES = 4096 };

static bool all(const unsigned char *x, unsigned char value)
{
    for (int i = 0; i < BYTES; i++)
        if (x[i] != value)
            return false;
    return true;
}

static CUevent event_new(void)
{
    CUevent event;
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    return event;
}

static unsigned char *pinned_of(unsigned char value) { return memset(gpb_child_pinned(BYTES), value, BYTES); }

static int late(void)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(2), pageable[BYTES];
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, stream) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, stream) == CUDA_SUCCESS);
    EXPECT(all(to, 2));                                       /* nothing forced it */
    memset(from, 3, BYTES);  /* Too early: the copy has not read it yet, and that shows. */
    EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS && all(to, 3));
    memset(pageable, 4, BYTES);
    EXPECT(cuMemcpyHtoDAsync(device, pageable, BYTES, stream) == CUDA_SUCCESS);
    memset(pageable, 5, BYTES);                               /* allowed, because the driver staged it */
    /* Done on return. */
    EXPECT(cuMemcpyDtoHAsync(pageable, device, BYTES, stream) == CUDA_SUCCESS && all(pageable, 4));
    return GPB_CHILD_OK;
}

static void test_late(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(late, SEEDS), 0);
}

/* As programs do that wait for a byte which the GPU writes. ThreadSanitizer takes that for a race. */
__attribute__((noinline, no_sanitize("thread"))) static void await(const volatile unsigned char *byte,
                                                                   unsigned char value)
{
    while (*byte != value) { }
}

/* FAKECUDA_ENGINE: queued work runs without another call. */
static int by_itself(void)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(2);
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, stream) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, stream) == CUDA_SUCCESS);
    alarm(60);
    await(&to[BYTES - 1], 1);
    EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS && all(to, 1));
    return GPB_CHILD_OK;
}

static void test_engine(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(by_itself, (const char *[]){ "FAKECUDA_ENGINE", "1", NULL }),
                     GPB_CHILD_OK);
}

/* Two panels through one staging buffer, with one stream for copies and another for results. */
static int staging(bool wait)
{
    gpb_child_start();
    CUdeviceptr panel[2] = { gpb_child_device(BYTES), gpb_child_device(BYTES) };
    unsigned char *buffer = gpb_child_pinned(BYTES), result[BYTES];
    CUstream copies = gpb_child_stream(CU_STREAM_NON_BLOCKING),
             other = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUevent copied = event_new(), first = event_new();
    unsigned char *unrelated = pinned_of(0);
    EXPECT(cuMemcpyHtoDAsync(gpb_child_device(BYTES), unrelated, BYTES, copies) == CUDA_SUCCESS);
    EXPECT(cuEventRecord(first, copies) == CUDA_SUCCESS);
    for (unsigned char i = 0; i < 2; i++) {
        /* Without `wait` the program waits for the wrong event, that of an earlier copy. */
        if (i)
            EXPECT(cuEventSynchronize(wait ? copied : first) == CUDA_SUCCESS);
        memset(buffer, i + 1, BYTES);
        EXPECT(cuMemcpyHtoDAsync(panel[i], buffer, BYTES, copies) == CUDA_SUCCESS);
        EXPECT(cuEventRecord(copied, copies) == CUDA_SUCCESS);
    }
    EXPECT(cuStreamWaitEvent(other, copied, 0) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(result, panel[0], BYTES, other) == CUDA_SUCCESS);
    return all(result, 1) ? GPB_CHILD_OK : GPB_CHILD_WRONG;
}

static int staging_right(void) { return staging(true); }
static int staging_reused(void) { return staging(false); }

static void test_staging(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(staging_right, SEEDS), 0);
    assert_in_range(gpb_child_wrong_seeds(staging_reused, SEEDS), 1, SEEDS);
}

/* One stream writes, another reads. */
static int across(bool wait, unsigned flags_write, unsigned flags_read)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(0);
    CUstream writer = gpb_child_stream(flags_write),
             reader = flags_read == 2 ? NULL : gpb_child_stream(flags_read);
    CUevent written = event_new();
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, writer) == CUDA_SUCCESS);
    EXPECT(cuEventRecord(written, writer) == CUDA_SUCCESS);
    if (wait)
        EXPECT(cuStreamWaitEvent(reader, written, 0) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, reader) == CUDA_SUCCESS);
    EXPECT(cuStreamSynchronize(reader) == CUDA_SUCCESS);
    return all(to, 1) ? GPB_CHILD_OK : GPB_CHILD_WRONG;
}

enum { NULL_STREAM = 2 };
static int across_waits(void) { return across(true, CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING); }
static int across_hopes(void) { return across(false, CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING); }
static int across_blocking(void) { return across(false, CU_STREAM_DEFAULT, CU_STREAM_DEFAULT); }
static int across_to_null(void) { return across(false, CU_STREAM_DEFAULT, NULL_STREAM); }
static int across_to_null_hopes(void) { return across(false, CU_STREAM_NON_BLOCKING, NULL_STREAM); }

static void test_across(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(across_waits, SEEDS), 0);
    assert_in_range(gpb_child_wrong_seeds(across_hopes, SEEDS), 1, SEEDS);
    assert_in_range(gpb_child_wrong_seeds(across_blocking, SEEDS), 1, SEEDS);
    /* The NULL stream waits for blocking streams. */
    assert_int_equal(gpb_child_wrong_seeds(across_to_null, SEEDS), 0);
    assert_in_range(gpb_child_wrong_seeds(across_to_null_hopes, SEEDS), 1, SEEDS);
}

/* The NULL stream first, then another stream, which comes after it only if it blocks. */
static int from_null(unsigned flags)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(0);
    CUstream reader = gpb_child_stream(flags);
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, CU_STREAM_LEGACY) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, reader) == CUDA_SUCCESS
           && cuStreamSynchronize(reader) == CUDA_SUCCESS);
    return all(to, 1) ? GPB_CHILD_OK : GPB_CHILD_WRONG;
}

static int from_null_blocking(void) { return from_null(CU_STREAM_DEFAULT); }
static int from_null_not(void) { return from_null(CU_STREAM_NON_BLOCKING); }

static void test_from_null(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(from_null_blocking, SEEDS), 0);
    assert_in_range(gpb_child_wrong_seeds(from_null_not, SEEDS), 1, SEEDS);
}

/* An event stands for its latest recording at the time of the wait. A wait for an event that was never
   recorded does nothing. */
static int recordings(void)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *one = pinned_of(1), *two = pinned_of(2), *to = pinned_of(0);
    CUstream writer = gpb_child_stream(CU_STREAM_NON_BLOCKING),
             reader = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = event_new(), never = event_new();
    EXPECT(cuStreamWaitEvent(reader, never, 0) == CUDA_SUCCESS && cuEventSynchronize(never) == CUDA_SUCCESS);
    EXPECT(cuMemcpyHtoDAsync(device, one, BYTES, writer) == CUDA_SUCCESS
           && cuEventRecord(event, writer) == CUDA_SUCCESS);
    EXPECT(cuStreamWaitEvent(reader, event, 0) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, reader) == CUDA_SUCCESS);
    EXPECT(cuMemcpyHtoDAsync(device, two, BYTES, writer) == CUDA_SUCCESS
           && cuEventRecord(event, writer) == CUDA_SUCCESS);
    EXPECT(cuEventDestroy(event) == CUDA_SUCCESS && cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSynchronize(reader) == CUDA_SUCCESS && !all(to, 0) && !all(to, 0xFF));
    /* WRONG: the second copy overtook the first, as it may. */
    return all(to, 1) ? GPB_CHILD_OK : GPB_CHILD_WRONG;
}

static void test_recordings(void **state)
{
    (void)state;
    assert_in_range(gpb_child_wrong_seeds(recordings, SEEDS), 1, SEEDS - 1);
}

/* Work outlives its stream's handle, queries come true in the end, and freeing waits. */
static int lifetimes(void)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(0);
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING),
             polled = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = event_new();
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, stream) == CUDA_SUCCESS
           && cuEventRecord(event, stream) == CUDA_SUCCESS);
    EXPECT(cuStreamDestroy(stream) == CUDA_SUCCESS
           && cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamWaitEvent(polled, event, 0) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, polled) == CUDA_SUCCESS
           && cuEventRecord(event, polled) == CUDA_SUCCESS);
    int waits = 0;
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        EXPECT(++waits < 1000);
    EXPECT(all(to, 1) && cuStreamQuery(polled) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(memset(to, 0, BYTES), device, BYTES, polled) == CUDA_SUCCESS);
    EXPECT(cuMemFree(device) == CUDA_SUCCESS && all(to, 1));
    return waits ? GPB_CHILD_WRONG : GPB_CHILD_OK;
}

static void test_lifetimes(void **state)
{
    (void)state;
    assert_in_range(gpb_child_wrong_seeds(lifetimes, SEEDS), 1, SEEDS);          /* some had to wait */
}

/* A wait that fails may leave some of the work done. After a sticky error no more is done. */
static int fails_half_way(void)
{
    gpb_child_start();
    CUdeviceptr device = gpb_child_device(BYTES);
    unsigned char *from = pinned_of(1), *to = pinned_of(0);
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    EXPECT(cuMemcpyHtoDAsync(device, from, BYTES, stream) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(to, device, BYTES, stream) == CUDA_SUCCESS);
    EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    bool done = all(to, 1);
    EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS && all(to, done));
    return done ? GPB_CHILD_WRONG : GPB_CHILD_OK;
}

static void test_fails_half_way(void **state)
{
    (void)state;
    setenv("FAKECUDA_FAIL", "cuStreamSynchronize:1:700", 1);
    assert_in_range(gpb_child_wrong_seeds(fails_half_way, SEEDS), 1, SEEDS - 1);
    unsetenv("FAKECUDA_FAIL");
}

static int timing(void)
{
    CUevent from = NULL, to = NULL;
    float ms = -1;
    gpb_child_start();
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUevent untimed = event_new();
    EXPECT(cuEventCreate(&from, 0) == CUDA_SUCCESS && cuEventCreate(&to, 0) == CUDA_SUCCESS);
    EXPECT(cuEventElapsedTime(&ms, from, to) == CUDA_ERROR_INVALID_HANDLE);       /* not recorded */
    EXPECT(cuEventRecord(from, stream) == CUDA_SUCCESS && cuEventRecord(to, stream) == CUDA_SUCCESS);
    EXPECT(cuEventElapsedTime(&ms, from, to) == CUDA_ERROR_NOT_READY);
    EXPECT(cuEventSynchronize(to) == CUDA_SUCCESS && cuEventElapsedTime(&ms, from, to) == CUDA_SUCCESS
           && ms >= 0);
    EXPECT(cuEventRecord(untimed, stream) == CUDA_SUCCESS
           && cuEventElapsedTime(&ms, from, untimed) == CUDA_ERROR_INVALID_HANDLE);
    return GPB_CHILD_OK;
}

static void test_timing(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(timing, 4), 0);
}

enum { THREADS = 4, ROUNDS = 50 };

static void *lane(void *context)
{
    EXPECT(cuCtxPushCurrent(context) == CUDA_SUCCESS);
    CUdeviceptr device = gpb_child_device(BYTES);
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = event_new();
    unsigned char *buffer = gpb_child_pinned(BYTES);
    for (unsigned char i = 0; i < ROUNDS; i++) {
        memset(buffer, i, BYTES);
        EXPECT(cuMemcpyHtoDAsync(device, buffer, BYTES, stream) == CUDA_SUCCESS
               && cuEventRecord(event, stream) == CUDA_SUCCESS);
        EXPECT(cuEventSynchronize(event) == CUDA_SUCCESS);
        memset(buffer, 0xFF, BYTES);
        EXPECT(cuMemcpyDtoHAsync(buffer, device, BYTES, stream) == CUDA_SUCCESS
               && cuStreamSynchronize(stream) == CUDA_SUCCESS);
        EXPECT(all(buffer, i));
    }
    EXPECT(cuMemFreeHost(buffer) == CUDA_SUCCESS && cuMemFree(device) == CUDA_SUCCESS
           && cuStreamDestroy(stream) == CUDA_SUCCESS);
    EXPECT(cuCtxPopCurrent(NULL) == CUDA_SUCCESS);
    return NULL;
}

static int threads(void)
{
    pthread_t thread[THREADS];
    CUcontext context = gpb_child_start();
    for (int i = 0; i < THREADS; i++)
        EXPECT(!pthread_create(&thread[i], NULL, lane, context));
    for (int i = 0; i < THREADS; i++)
        EXPECT(!pthread_join(thread[i], NULL));
    return GPB_CHILD_OK;
}

static void test_threads(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_wrong_seeds(threads, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late), cmocka_unit_test(test_engine),
        cmocka_unit_test(test_staging), cmocka_unit_test(test_across),
        cmocka_unit_test(test_from_null), cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_fails_half_way),
        cmocka_unit_test(test_timing), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
