/* SPDX-License-Identifier: MIT */
/* Calibration; see calibrate.h. Only copies are timed in isolation. The rest is measured by real calls on the
   normal path, so that they warm up what later calls use, and what is learnt from them holds for later
   calls. */
#include "src/learn/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/numbers.h"
#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/learn/machine.h"
#include "src/learn/saved.h"
#include "src/run/compute.h"
#include "src/service/clock.h"
#include "src/service/driver.h"
#include "src/service/events.h"
#include "src/service/log.h"

enum { CHUNK = 2 << 20, SOURCE = 2 * CHUNK, SMALL = 16, LARGEST = 1024 };
/* After a call that takes this long no larger one is tried. One of 256^3 takes 30 us on an H200. */
#define TOO_SLOW_S 2e-3

/* ---- the link */

typedef struct link {
    CUstream up, down;
    char *pinned[2];                     /* for up, for down */
    CUdeviceptr memory[2];
} link;

static CUresult open_link(const gpb_driver *driver, link *l)
{
    CUresult result = driver->cuStreamCreate(&l->up, CU_STREAM_NON_BLOCKING);
    if (!result) result = driver->cuStreamCreate(&l->down, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && !result; i++) {
        result = driver->cuMemHostAlloc((void **)&l->pinned[i], CHUNK, CU_MEMHOSTALLOC_PORTABLE);
        if (!result) result = driver->cuMemAlloc(&l->memory[i], CHUNK);
    }
    return result;
}

static void close_link(const gpb_driver *driver, link *l)
{
    for (int i = 0; i < 2; i++) {
        if (l->pinned[i]) driver->cuMemFreeHost(l->pinned[i]);
        if (l->memory[i]) driver->cuMemFree(l->memory[i]);
    }
    if (l->up) driver->cuStreamDestroy(l->up);
    if (l->down) driver->cuStreamDestroy(l->down);
}

/* Copies that many chunks each way at once. Returns seconds, or a negative number after an error. */
static double move(const gpb_driver *driver, const link *l, int chunks)
{
    CUresult result = CUDA_SUCCESS;
    const double begin_s = gpb_clock_s();
    for (int i = 0; i < chunks && !result; i++) {
        result = driver->cuMemcpyHtoDAsync(l->memory[0], l->pinned[0], CHUNK, l->up);
        if (!result) result = driver->cuMemcpyDtoHAsync(l->pinned[1], l->memory[1], CHUNK, l->down);
    }
    if (!result) result = driver->cuStreamSynchronize(l->up);
    if (!result) result = driver->cuStreamSynchronize(l->down);
    return result ? -1 : gpb_clock_s() - begin_s;
}

/* The difference between ten chunks and two is the time of eight chunks without the fixed cost of copying. */
static void measure_link(const gpb_driver *driver, const link *l)
{
    double two = 1, ten = 1;
    for (int i = 0; i < 4; i++) {
        const double few = move(driver, l, 2), many = move(driver, l, 10);
        if (few < 0 || many < 0) return;
        if (i == 0) continue;
        two = min(two, few);
        ten = min(ten, many);
    }
    if (ten > two) atomic_store(&gpb_machine_here.dma_mbs, (int64_t)(8.0 * CHUNK / (ten - two) * 1e-6));
}

/* A core's rate from ordinary memory into pinned memory. */
static void measure_core(const link *l)
{
    double best = 1;
    char *source = malloc(SOURCE);
    if (!source) return;
    memset(source, 1, SOURCE);
    for (int i = 0; i < 3; i++)
        for (int at = 0; at < SOURCE; at += CHUNK) {
            const double begin_s = gpb_clock_s();
            memcpy(l->pinned[0], source + at, CHUNK);
            best = min(best, gpb_clock_s() - begin_s);
        }
    free(source);
    atomic_store(&gpb_machine_here.core_mbs, (int64_t)(CHUNK / best * 1e-6));
}

/* ---- calls */

static gpb_call square(enum gpb_type type, int64_t n, const void *a, const void *b, void *c)
{
    return (gpb_call){ .symbol = "calibration", .width = 64, .type = type,
                       .m = n, .n = n, .k = n, .alpha = 1, .batch = 1,
                       .x = { { .base = a, .ld = n, .trans = 'N' }, { .base = b, .ld = n, .trans = 'N' },
                              { .base = c, .ld = n, .trans = 'N', .uplo = 'G' } } };
}

/* One call on the GPU, whatever it costs. there: its operands are in device memory, else in host memory; the
   call is not made if the driver says otherwise. Returns seconds, or a negative number; *facts and *plan are
   those of the call's beginning. */
static double timed(const gpb_call *call, bool there, gpb_facts *facts, gpb_plan *plan)
{
    const gpb_policy always = { .offload = GPB_OFFLOAD_ALWAYS };
    gpb_place_facts(call, true, facts);
    gpb_machine_facts(call, facts);
    const enum gpb_place place = there ? GPB_PLACE_DEVICE : GPB_PLACE_HOST;
    for (int x = 0; x < GPB_OPERANDS; x++)
        if (facts->where[x].place != place) return -1;
    if (gpb_gpu_leaving()) return -1;
    *plan = gpb_decide(call, facts, &always);
    if (!plan->gpu) return -1;
    const double begin_s = gpb_clock_s();
    const gpb_outcome out = gpb_compute(call, facts, &always, *plan);
    return out.done && !out.failure ? gpb_clock_s() - begin_s : -1;
}

/* Makes the call four times and learns from each. Returns the shortest time, or a negative number. */
static double learn(const gpb_call *call, bool there)
{
    double best = 1;
    for (int i = 0; i < 4; i++) {
        gpb_facts facts;
        gpb_plan plan;
        const double seconds = timed(call, there, &facts, &plan);
        if (seconds < 0) return -1;
        gpb_machine_gpu_took(call, &facts, plan.gpu_s / facts.learnt.gpu_ratio, seconds);
        best = min(best, seconds);
    }
    return best;
}

/* The fixed cost of a call: the time of a small call from host memory, less the model's time for its copies
   and its kernel. */
static void measure_launch(void)
{
    float a[SMALL * SMALL] = { 1 }, b[SMALL * SMALL] = { 1 }, c[SMALL * SMALL];
    const gpb_call call = square(GPB_TYPE_s, SMALL, a, b, c);
    gpb_facts facts;
    gpb_plan plan;
    double best = 1;
    for (int i = 0; i < 8; i++) {
        const double seconds = timed(&call, false, &facts, &plan);
        if (seconds < 0) return;
        best = min(best, seconds);
    }
    const double rest = best - (plan.gpu_s / facts.learnt.gpu_ratio - facts.link.call_s);
    atomic_store(&gpb_machine_here.launch_ns, (int64_t)(1e9 * max(rest, best / 2)));
}

/* Kernels, with operands in device memory: small sizes, and one that is large enough for the tensor cores.
   Bytes of 0x3c are floats of 0.0115 and doubles of 1.5e-18. */
static double learn_kernels(const gpb_driver *driver, CUstream stream, enum gpb_type type)
{
    CUdeviceptr memory = 0;
    const size_t bytes = (size_t)LARGEST * LARGEST * gpb_type_bytes(type);
    if (driver->cuMemAlloc(&memory, 3 * bytes)) return -1;
    CUresult failure = driver->cuMemsetD8Async(memory, 0x3c, 3 * bytes, stream);
    if (!failure) failure = driver->cuStreamSynchronize(stream);
    double seconds = failure ? -1 : 0;
    for (int64_t n = 256; n <= LARGEST && seconds >= 0 && seconds < TOO_SLOW_S; n *= 2) {
        const gpb_call call = square(type, n, (void *)(uintptr_t)memory, (void *)(uintptr_t)(memory + bytes),
                                     (void *)(uintptr_t)(memory + 2 * bytes));
        seconds = learn(&call, true);
    }
    driver->cuMemFree(memory);
    return seconds;
}

/* A call from host memory, which has all that most calls have: copies up, kernels, copies down. It is
   made to be learnt from, or once for what it leaves loaded. */
static void make_whole(enum gpb_type type, bool learns)
{
    enum { N = 512 };
    const size_t element = gpb_type_bytes(type), bytes = N * N * element;
    const gpb_element one = gpb_element_of(type, 1);
    char *memory = malloc(3 * bytes);
    if (!memory) return;
    for (size_t at = 0; at < 3 * bytes; at += element) memcpy(memory + at, &one, element);
    const gpb_call call = square(type, N, memory, memory + bytes, memory + 2 * bytes);
    gpb_facts facts;
    gpb_plan plan;
    if (learns) learn(&call, false);
    else timed(&call, false, &facts, &plan);
    free(memory);
}

static void measure(gpb_device *device)
{
    const gpb_driver *driver = gpb_driver_get();
    link l = { 0 };
    if (gpb_context_enter(device)) return;
    if (!open_link(driver, &l)) {
        measure_link(driver, &l);
        measure_core(&l);
    }
    measure_launch();
    const double seconds = l.up ? learn_kernels(driver, l.up, GPB_TYPE_s) : -1;
    close_link(driver, &l);
    if (seconds >= 0 && seconds < TOO_SLOW_S) make_whole(GPB_TYPE_s, true);
    gpb_context_exit();
}

bool gpb_calibrate(void)
{
    gpb_device *devices;
    if (!gpb_device_list(&devices)) return false;
    const double begin_s = gpb_clock_s();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    const bool loaded = gpb_saved_load();
    if (!loaded) measure(&devices[0]);
    gpb_driver_capture_mode(&mode);
    gpb_machine_measured();
    if (gpb_option_traces())
        gpb_events_add("start", loaded ? "load the calibration" : "measure the machine", begin_s,
                       gpb_clock_s(), "");
    gpb_log_debug("calibration: %s in %.1f ms: the link copies %lld MB/s each way, a core %lld MB/s; "
                  "a call costs %lld ns", loaded ? "loaded" : "measured", 1e3 * (gpb_clock_s() - begin_s),
                  (long long)gpb_machine_here.dma_mbs, (long long)gpb_machine_here.core_mbs,
                  (long long)gpb_machine_here.launch_ns);
    return !loaded;
}

void gpb_calibrate_warm(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpb_driver_capture_mode(&mode);
    make_whole(GPB_TYPE_s, false);
    gpb_driver_capture_mode(&mode);
}
