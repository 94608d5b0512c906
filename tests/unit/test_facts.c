/* SPDX-License-Identifier: MIT */
/* Where operands live, according to the software libcuda and the program's own memory. The GPU behind it
   is this file's. usage: test_facts */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/gpu/host_memory.h"
#include "src/learn/machine.h"
#include "src/host/next.h"
#include "src/service/cores.h"

static gpb_device device = { .arch = 90, .sms = 132, .concurrent = 1, .budget = 1 << 30 };
static bool started = true;
static int threads = 4, workers;

static int asked;

static CUresult ask_counted(unsigned count, CUpointer_attribute *attributes, void **values,
                            CUdeviceptr pointer)
{
    const CUresult result = cuPointerGetAttributes(count, attributes, values, pointer);
    asked++;
    return result;
}

const gpb_driver *gpb_driver_get(void)
{
    static const gpb_driver driver = { .cuPointerGetAttributes = ask_counted };
    return &driver;
}
int gpb_device_list(gpb_device **first)
{
    *first = &device;
    return started;
}
bool gpb_gpu_start(void) { return started = true; }
bool gpb_gpu_started(void) { return started; }
bool gpb_gpu_possible(void) { return true; }
static bool lost, forked;
bool gpb_gpu_lost(void) { return lost; }
bool gpb_gpu_forked(void) { return forked; }
void gpb_gpu_note_device(void) { }
bool gpb_context_same(const gpb_device *of)
{
    (void)of;
    return true;
}
CUresult gpb_context_enter(gpb_device *of) { return cuCtxPushCurrent(of->context); }
void gpb_context_exit(void) { cuCtxPopCurrent(NULL); }
void gpb_gpu_give_up(const char *why) { (void)why; }
void gpb_log_debug(const char *format, ...) { (void)format; }
const char *gpb_driver_error(CUresult result) { return result ? "an error" : "none"; }
int gpb_cores(void) { return 8; }
int gpb_crew_size(void) { return workers; }
int gpb_host_threads(void) { return threads; }
bool gpb_host_threads_settable(void) { return false; }

enum { N = 64, BYTES = 4 * N * N };
static float *pageable, *pinned, *managed;
static CUdeviceptr memory;

static int begin(void **state)
{
    (void)state;
    CUdeviceptr at;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&device.context, 0) || cuCtxPushCurrent(device.context))
        return -1;
    if (cuMemHostAlloc((void **)&pinned, BYTES, 0) || cuMemAlloc(&memory, BYTES)
        || cuMemAllocManaged(&at, BYTES, CU_MEM_ATTACH_GLOBAL))
        return -1;
    managed = (float *)(uintptr_t)at;
    pageable = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cuCtxPopCurrent(NULL);
    return pageable == MAP_FAILED ? -1 : 0;
}

static gpb_call gemm(const void *a, const void *b, void *c)
{
    return (gpb_call){ .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N', .x[GPB_B].trans = 'N',
                       .x[GPB_C].uplo = 'G', .m = N, .n = N, .k = N, .x[GPB_A].ld = N,
                       .x[GPB_B].ld = N, .x[GPB_C].ld = N, .alpha = 1, .batch = 1, .x[GPB_A].base = a,
                           .x[GPB_B].base = b, .x[GPB_C].base = c };
}

static gpb_facts facts_of(gpb_call call)
{
    gpb_facts facts;
    gpb_place_facts(&call, true, &facts);
    gpb_machine_facts(&call, &facts);
    return facts;
}

static bool none_there(const gpb_call *call) { return gpb_place_probed_host(call, __builtin_ia32_rdtsc()); }

static void places(void **state)
{
    (void)state;
    gpb_facts facts = facts_of(gemm(pageable, pinned, managed));
    assert_int_equal(facts.where[GPB_A].place, GPB_PLACE_HOST);
    assert_int_equal(facts.where[GPB_B].place, GPB_PLACE_PINNED);
    assert_int_equal(facts.where[GPB_C].place, GPB_PLACE_DEVICE);
    facts = facts_of(gemm((void *)(uintptr_t)memory, NULL, pageable));
    assert_true(facts.where[GPB_A].place == GPB_PLACE_DEVICE && facts.where[GPB_B].place == GPB_PLACE_HOST
                && facts.where[GPB_C].place == GPB_PLACE_HOST && facts.device == 1);
    assert_true(gpb_facts_on_gpu(&facts));
    facts = facts_of(gemm(pinned, pinned, pinned));
    assert_false(gpb_facts_on_gpu(&facts));
}

/* Only the crew mirrors a triangle. A triangle of C is not mirrored. */
static void symmetric(void **state)
{
    (void)state;
    gpb_call call = gemm(pinned, pinned, pinned);
    for (int x = 0; x < GPB_OPERANDS; x++) {
        call.x[x].structure = GPB_SYMMETRIC;
        call.x[x].uplo = 'U';
    }
    gpb_facts facts = facts_of(call);
    assert_true(gpb_where_is(&facts, GPB_A, GPB_PLACE_HOST) && gpb_where_is(&facts, GPB_B, GPB_PLACE_HOST)
                && gpb_where_is(&facts, GPB_C, GPB_PLACE_PINNED));
    call.x[GPB_A].base = (void *)(uintptr_t)memory;
    facts = facts_of(call);
    assert_true(gpb_where_is(&facts, GPB_A, GPB_PLACE_DEVICE));
}

/* In place for kernels and for the host alike, so nothing must be copied. */
static void managed_memory(void **state)
{
    (void)state;
    const gpb_call call = gemm(pageable, managed, managed),
                   mixed = gemm(managed, managed, (void *)(uintptr_t)memory);
    gpb_facts facts = facts_of(call);
    assert_true(facts.where[GPB_B].place == GPB_PLACE_DEVICE && facts.where[GPB_B].managed
                && facts.where[GPB_C].managed && !facts.where[GPB_A].managed);
    assert_false(gpb_facts_on_gpu(&facts) || gpb_facts_c_on_gpu(&facts));
    assert_true(none_there(&call) && !none_there(&mixed));
    facts = facts_of(mixed);
    assert_true(gpb_facts_on_gpu(&facts) && gpb_facts_c_on_gpu(&facts) && !facts.where[GPB_C].managed);
    const void *a[] = { managed, pageable }, *b[] = { managed, managed + 256 };
    void *c[] = { managed, (void *)(uintptr_t)memory };
    gpb_call array = gemm(NULL, NULL, NULL);
    array.m = array.n = array.k = 16;
    array.x[GPB_A].ld = array.x[GPB_B].ld = array.x[GPB_C].ld = 16;
    array.batch = 2;
    array.x[GPB_A].array = a;
    array.x[GPB_B].array = b;
    array.x[GPB_C].array = (const void *const *)c;
    facts = facts_of(array);
    assert_true(facts.where[GPB_A].managed && facts.where[GPB_B].managed && !facts.where[GPB_C].managed
                && facts.where[GPB_A].place == GPB_PLACE_ELSEWHERE && gpb_facts_c_on_gpu(&facts));
    started = false;
    assert_true(none_there(&call) && !none_there(&mixed));      /* no reason to start a GPU */
    started = true;
    device.concurrent = 0;
    assert_int_equal(facts_of(call).gpu.arch, 0);
    assert_int_equal(facts_of(gemm(pageable, pinned, pageable)).gpu.arch, 90);
    /* `driver` has no entry for tensor maps. */
    assert_true(facts_of(gemm(pageable, pinned, pageable)).gpu.no_maps);
    device.concurrent = 1;
}

/* Memory counts as pinned only if all of the operand is. */
static void extents(void **state)
{
    (void)state;
    gpb_call call = gemm(pinned, pinned, pinned);
    call.k = 32;
    call.x[GPB_A].ld = 128;  /* A: 64 x 32, up to 31 * 128 + 64 = 4032 of 4096 elements */
    assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_PINNED);
    call.x[GPB_A].base = pinned + 64;
    assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_PINNED);
    call.x[GPB_A].base = pinned + 65;
    assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_HOST);
    call = gemm(pinned, pinned, pinned);
    call.m = call.n = call.k = 16;
    call.x[GPB_A].ld = call.x[GPB_B].ld = call.x[GPB_C].ld = 16;
    call.batch = 16;
    call.x[GPB_A].stride = 256;
    call.x[GPB_B].stride = 257;
    call.x[GPB_C].stride = -1;
    gpb_facts facts = facts_of(call);
    assert_int_equal(facts.where[GPB_A].place, GPB_PLACE_PINNED);
    assert_int_equal(facts.where[GPB_B].place, GPB_PLACE_HOST);
    assert_int_equal(facts.where[GPB_C].place, GPB_PLACE_HOST);
    call.x[GPB_A].stride = INT64_MAX / 2;
    call.x[GPB_B].ld = INT64_MAX;
    facts = facts_of(call);
    assert_true(facts.where[GPB_A].place == GPB_PLACE_HOST && facts.where[GPB_B].place == GPB_PLACE_HOST);
}

/* A batch of products of size x size x size by pointers. */
static gpb_call batch_of(int64_t size, int64_t members, const void **a, const void **b, void **c)
{
    gpb_call call = gemm(NULL, NULL, NULL);
    call.m = call.n = call.k = size;
    for (int x = 0; x < GPB_OPERANDS; x++) call.x[x].ld = size;
    call.batch = members;
    call.x[GPB_A].array = a;
    call.x[GPB_B].array = b;
    call.x[GPB_C].array = (const void *const *)c;
    return call;
}

static void arrays(void **state)
{
    (void)state;
    const void *a[3] = { pinned, pinned + 256, pinned + 512 }, *b[3] = { pinned, pageable, pinned };
    void *c[3] = { pageable, (void *)(uintptr_t)memory, pageable };
    gpb_call call = batch_of(16, 3, a, b, c);
    gpb_facts facts = facts_of(call);
    assert_int_equal(facts.where[GPB_A].place, GPB_PLACE_PINNED);
    /* Both kinds of host memory, so it is staged. */
    assert_int_equal(facts.where[GPB_B].place, GPB_PLACE_HOST);
    assert_int_equal(facts.where[GPB_C].place, GPB_PLACE_ELSEWHERE);
    a[2] = pinned + N * N - 255;                               /* the last member ends after the allocation */
    assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_HOST);
    c[0] = c[2] = c[1];
    assert_int_equal(facts_of(call).where[GPB_C].place, GPB_PLACE_DEVICE);
    assert_false(gpb_place_surely_host(&call, true) || none_there(&call));
}

/* Among many members, the one that lies elsewhere is found at any position. */
static void long_arrays(void **state)
{
    (void)state;
    enum { MEMBERS = 40 };
    const void *a[MEMBERS], *b[MEMBERS];
    void *c[MEMBERS];
    gpb_call call = batch_of(8, MEMBERS, a, b, c);
    for (int odd = -1; odd < MEMBERS; odd++) {
        for (int i = 0; i < MEMBERS; i++) {
            a[i] = pinned + 64 * i;
            b[i] = pageable + 64 * i;
            c[i] = (float *)(uintptr_t)memory + 64 * i;
            if (i == odd) {
                a[i] = pageable;
                b[i] = pinned;
                c[i] = pinned;
            }
        }
        const gpb_facts facts = facts_of(call);
        assert_int_equal(facts.where[GPB_A].place, odd < 0 ? GPB_PLACE_PINNED : GPB_PLACE_HOST);
        assert_int_equal(facts.where[GPB_B].place, GPB_PLACE_HOST);
        assert_int_equal(facts.where[GPB_C].place, odd < 0 ? GPB_PLACE_DEVICE : GPB_PLACE_ELSEWHERE);
    }
    for (int i = 0; i < MEMBERS; i++) a[i] = pinned + 64 * i;
    for (int last = 1; last < MEMBERS; last++) {
        a[last] = pinned + N * N - 63;                         /* ends one element after the allocation */
        assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_HOST);
        a[last] = pinned + N * N - 64;
        assert_int_equal(facts_of(call).where[GPB_A].place, GPB_PLACE_PINNED);
        a[last] = pinned + 64 * last;
    }
}

/* Members at equal distances or not. The one that is a few bytes off is found at any position, and so is a
   step that is no whole number of elements. */
static void equal_steps(void **state)
{
    (void)state;
    enum { MEMBERS = 40 };
    const void *a[MEMBERS], *b[MEMBERS];
    void *c[MEMBERS];
    gpb_call call = batch_of(8, MEMBERS, a, b, c);
    char *const device_memory = (char *)(uintptr_t)memory;
    for (int odd = -1; odd < MEMBERS; odd++) {
        for (int i = 0; i < MEMBERS; i++) {
            a[i] = device_memory + 400 * i + (i == odd ? 4 : 0);
            b[i] = device_memory;
            c[i] = device_memory + 4 * 70 * (MEMBERS - i);
        }
        const gpb_facts facts = facts_of(call);
        assert_true(facts.where[GPB_A].place == GPB_PLACE_DEVICE
                    && facts.where[GPB_B].place == GPB_PLACE_DEVICE
                    && facts.where[GPB_C].place == GPB_PLACE_DEVICE);
        assert_int_equal(facts.where[GPB_A].member_stride, odd < 0 ? 100 : -1);
        assert_int_equal(facts.where[GPB_B].member_stride, 0);
        assert_int_equal(facts.where[GPB_C].member_stride, -1);                 /* descending */
    }
    for (int i = 0; i < MEMBERS; i++) a[i] = device_memory + 402 * i;
    assert_int_equal(facts_of(call).where[GPB_A].member_stride, -1);
    call.batch = 2;
    a[1] = pageable;                           /* two of different kinds are never a strided batch */
    assert_true(facts_of(call).where[GPB_A].member_stride == -1
                && facts_of(call).where[GPB_A].place == GPB_PLACE_ELSEWHERE);
}

static float global[16];

static void *on_another_thread(void *callers)
{
    /* Not a local variable, because AddressSanitizer may put those elsewhere. */
    void *own = __builtin_frame_address(0);
    bool good = gpb_host_memory((const void *[]){ own, global }, 2)
                && !gpb_host_memory((const void *[]){ callers }, 1);
    return good ? callers : NULL;
}

/* What is surely the host's: heap, stack and data, nothing that is mapped, and above all nothing of a
   GPU's. */
static void surely_host(void **state)
{
    (void)state;
    /* Not malloc, because the sanitizers' does not grow the heap. */
    void *local = __builtin_frame_address(0), *heap = sbrk(64);
    const void *certain[] = { heap, local, global };
    assert_true(gpb_host_memory(certain, 3));
    const void *uncertain[] = { pageable, (void *)(uintptr_t)memory, NULL,
                                (void *)((uintptr_t)local - 65536) };
    for (int i = 0; i < 4; i++) assert_false(gpb_host_memory(&uncertain[i], 1));
    gpb_call call = gemm(heap, local, global), mixed = gemm(heap, local, (void *)(uintptr_t)memory);
    assert_true(gpb_place_surely_host(&call, true) && !gpb_place_surely_host(&mixed, true)
                && !none_there(&mixed));
    call.x[GPB_A].base = pageable;
    assert_true(!gpb_place_surely_host(&call, true) && none_there(&call));
    started = false;
    assert_true(gpb_place_surely_host(&mixed, false) && !gpb_place_surely_host(&mixed, true));
    started = true;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, local), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, local);
}

/* What the driver says of a page is believed for a moment, and no longer. */
static void probes(void **state)
{
    (void)state;
    const gpb_call call = gemm(pageable, pageable + 1024, pageable + 2048),
                   mixed = gemm(pageable, pageable, (void *)(uintptr_t)memory);
    int calls = 0, before = asked;
    for (; calls < 100000 && asked - before == 3 * calls; calls++) assert_true(none_there(&call));
    assert_true(calls < 100000);                /* one of them was not asked about */
    for (int i = 0; i < 10; i++) assert_false(none_there(&mixed));
    before = asked;
    const struct timespec rest = { .tv_nsec = 1000000 };
    nanosleep(&rest, NULL);
    assert_true(none_there(&call) && asked == before + 3);
}

/* The GPU is lost. Then only memory that the driver once called a GPU's, or still does, can be out of
   reach, and it is if the operating system cannot read it. */
static void out_of_reach(void **state)
{
    (void)state;
    const gpb_call host = gemm(pageable, pageable, pageable),
                   device = gemm(pageable, (void *)(uintptr_t)memory, pageable);
    char *none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const gpb_call on_demand = gemm(pageable, pageable, none),
                   edge = gemm(pageable + N * N - 1, pageable, pageable);
    assert_int_equal(facts_of(device).where[GPB_B].place, GPB_PLACE_DEVICE);
    assert_false(gpb_place_unreachable(&device));          /* the GPU is not lost yet */
    lost = true;
    for (int i = 0; i < 2; i++, forked = true) {
        assert_true(gpb_place_unreachable(&device));
        assert_false(gpb_place_unreachable(&host) || gpb_place_unreachable(&on_demand)
                     || gpb_place_unreachable(&edge));
    }
    const int before = asked;
    for (int i = 0; i < 100; i++) assert_false(gpb_place_unreachable(&host));
    assert_int_equal(asked, before);                     /* in a child there is no driver to ask */
    mprotect(none + 4096, 4096, PROT_READ);
    assert_true(gpb_host_readable(none + 8191) && !gpb_host_readable(none + 4095));
    munmap(none, 8192);
    lost = forked = false;
}

static void machine(void **state)
{
    (void)state;
    gpb_call call = gemm(pageable, pageable, pageable);
    gpb_facts before = facts_of(call);
    assert_true(before.host.cores == 4 && before.learnt.host_ratio > 0.5 && before.learnt.host_ratio < 1
                && before.learnt.gpu_ratio == 1 && before.link.call_s == 20e-6);
    assert_true(before.link.up_gbs > before.link.down_gbs && before.link.dma_gbs > before.link.up_gbs
                && before.gpu.arch == 90);
    unsigned age = gpb_machine_age();
    double few = gpb_machine_too_few();
    for (int i = 0; i < 12; i++) gpb_machine_host_took(&call, 4, 1e-5, 8e-5);
    assert_true(facts_of(call).learnt.host_ratio > 7 && gpb_machine_age() != age
                && gpb_machine_too_few() < few / 4);
    threads = 1;
    /* That ratio was learnt of four threads. */
    assert_true(facts_of(call).learnt.host_ratio == before.learnt.host_ratio);
    gpb_machine_here.dma_mbs = 50000;
    gpb_machine_here.core_mbs = 10000;
    gpb_machine_here.launch_ns = 12000;
    gpb_machine_measured();
    gpb_facts after = facts_of(call);
    assert_true(after.link.dma_gbs == 50 && after.link.call_s > 11.9e-6 && after.link.call_s < 12.1e-6
                && after.link.up_gbs > 9 && after.link.up_gbs < 10);
    workers = 15;                                              /* eight cores in each direction, 50 GB/s */
    after = facts_of(call);
    assert_true(after.link.up_gbs > 40 && after.link.up_gbs < 45 && after.link.down_gbs > 38
                && after.link.down_gbs < after.link.up_gbs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places), cmocka_unit_test(symmetric),
        cmocka_unit_test(managed_memory), cmocka_unit_test(extents),
        cmocka_unit_test(arrays), cmocka_unit_test(long_arrays), cmocka_unit_test(equal_steps),
        cmocka_unit_test(surely_host), cmocka_unit_test(probes), cmocka_unit_test(out_of_reach),
        cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
