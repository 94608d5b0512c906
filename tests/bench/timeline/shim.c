/* SPDX-License-Identifier: MIT */
/* A libcuda.so.1 in front of the real one ($TIMELINE_DRIVER), with the functions of driver.def. It notes when
   those on a GEMM's way began and ended, and passes everything on. If asked, it sets a timed event before and
   behind whatever takes the GPU's time, which costs two calls more each. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "tests/bench/timeline/timeline.h"

#define NO_STREAM ((CUstream)-1)
enum { EVENTS = 2 * TIMELINE_QUEUED };

static timeline_call calls[TIMELINE_CALLS];
static int count;

static struct {
    CUresult (*create)(CUevent *, unsigned), (*record)(CUevent, CUstream);
    CUresult (*synchronize)(CUevent), (*elapsed)(float *, CUevent, CUevent);
} events;
static CUevent event[EVENTS], base;
static int used = -1;      /* < 0: not asked for */

const timeline_call *timeline_calls(int *made)
{
    *made = count;
    return calls;
}

void timeline_restart(bool gpu)
{
    count = 0;
    used = -1;
    if (!gpu) return;
    if (!base) events.create(&base, CU_EVENT_DEFAULT);
    events.record(base, NULL);
    events.synchronize(base);
    used = 0;
}

void timeline_gpu(void)
{
    for (int i = 0; i < count; i++)
        if (calls[i].event >= 0) {
            events.synchronize(event[calls[i].event + 1]);
            events.elapsed(&calls[i].gpu_begin_ms, base, event[calls[i].event]);
            events.elapsed(&calls[i].gpu_end_ms, base, event[calls[i].event + 1]);
        }
}

static int mark(CUstream stream)
{
    if (used < 0 || used == EVENTS || stream == NO_STREAM) return -1;
    if (!event[used]) events.create(&event[used], CU_EVENT_DEFAULT);
    events.record(event[used], stream);
    return used++;
}

static void note(const char *name, uint64_t begin, size_t amount, CUstream stream, int before)
{
    if (count < TIMELINE_CALLS)
        calls[count++] = (timeline_call){ .name = name, .begin = begin, .end = __rdtsc(), .amount = amount,
                                          .stream = stream, .event = before };
}

/* Every function goes where its slot says. cuda.h renames some: NAME is what a function is really called. */
#define QUOTED(name) #name
#define NAME(name)   QUOTED(name)
#define DRIVER(name)                                                         \
    __attribute__((visibility("hidden"))) void *slot_##name;                 \
    __asm__(".text\n.globl " NAME(name) "\n.type " NAME(name) ", @function\n" \
            NAME(name) ": jmp *slot_" #name "(%rip)\n");
#define OPTIONAL(name) DRIVER(name)
#include "src/service/driver.def"
#undef DRIVER
#undef OPTIONAL

#define TIMED(name, params, args, amount, queue)                      \
    static CUresult (*real_##name) params;                            \
    static CUresult timed_##name params                               \
    {                                                                 \
        const int before = mark(queue);                               \
        const uint64_t begin = __rdtsc();                             \
        const CUresult result = real_##name args;                     \
        note(#name, begin, amount, queue, before);                    \
        if (before >= 0) mark(queue);                                 \
        return result;                                                \
    }
#include "tests/bench/timeline/timed.def"
#undef TIMED

__attribute__((constructor)) static void connect(void)
{
    const char *path = getenv("TIMELINE_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!driver) abort();
#define DRIVER(name) slot_##name = dlsym(driver, NAME(name));
#define OPTIONAL(name) DRIVER(name)
#include "src/service/driver.def"
#define TIMED(name, params, args, amount, queue)   \
    real_##name = (CUresult(*) params)slot_##name; \
    slot_##name = (void *)timed_##name;
#include "tests/bench/timeline/timed.def"
    *(void **)&events.create = dlsym(driver, "cuEventCreate");
    *(void **)&events.record = dlsym(driver, "cuEventRecord");
    *(void **)&events.synchronize = dlsym(driver, "cuEventSynchronize");
    *(void **)&events.elapsed = dlsym(driver, "cuEventElapsedTime");
}
