/* SPDX-License-Identifier: MIT */
/* A libcuda.so.1 in front of the real one ($TIMELINE_DRIVER), for the functions of driver.def: notes when those on a GEMM's way began and
   ended, and passes everything on. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "tests/bench/timeline/timeline.h"

static timeline_call calls[TIMELINE_CALLS];
static int count;

const timeline_call *timeline_calls(int *made)
{
    *made = count;
    return calls;
}

void timeline_restart(void) { count = 0; }

static void note(const char *name, uint64_t begin, size_t bytes)
{
    if (count < TIMELINE_CALLS) calls[count++] = (timeline_call){ name, begin, __rdtsc(), bytes };
}

/* Every function goes where its slot says. cuda.h renames some: NAME is what a function is really called. */
#define QUOTED(name) #name
#define NAME(name)   QUOTED(name)
#define DRIVER(name)                                                  \
    __attribute__((visibility("hidden"))) void *slot_##name;          \
    __asm__(".text\n.globl " NAME(name) "\n.type " NAME(name) ", @function\n" NAME(name) ": jmp *slot_" #name "(%rip)\n");
#define OPTIONAL(name) DRIVER(name)
#include "src/driver.def"
#undef DRIVER
#undef OPTIONAL

#define TIMED(name, params, args, bytes)                              \
    static CUresult (*real_##name) params;                            \
    static CUresult timed_##name params                               \
    {                                                                 \
        const uint64_t begin = __rdtsc();                             \
        const CUresult result = real_##name args;                     \
        note(#name, begin, bytes);                                    \
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
#include "src/driver.def"
#define TIMED(name, params, args, bytes) real_##name = (CUresult (*) params)slot_##name, slot_##name = (void *)timed_##name;
#include "tests/bench/timeline/timed.def"
}
