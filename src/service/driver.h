/* SPDX-License-Identifier: MIT */
/* libcuda's entry points as a struct of pointers, filled by dlopen: the library has no CUDA in its ELF needs. */
#ifndef GPB_DRIVER_H
#define GPB_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gpb_driver {
#define DRIVER(function) __typeof__(&function) function;
#define OPTIONAL(function) DRIVER(function)
#include "src/service/driver.def"
#undef OPTIONAL
#undef DRIVER
} gpb_driver;

/* Returns when no other thread is inside dlopen: opening libcuda, and its start, must wait for that. */
void gpb_driver_pass_linker(void);
/* The entry points; NULL where there is no libcuda, or one that lacks some of them (why, if not NULL, gets a phrase). Opened once. */
const gpb_driver *gpb_driver_open(const char **why);
/* Exchanges how this thread's calls and a graph that the program is recording (in any thread) bear on one another. Around calls that are
   not recorded it is to be CU_STREAM_CAPTURE_MODE_RELAXED, or they spoil that graph: cuMemAlloc or cuEventQuery would, anywhere in the
   process. CUDA is initialised. */
void gpb_driver_capture_mode(CUstreamCaptureMode *mode);
/* The number of the current context, another one after each reset; 0: unknown (before CUDA 12). */
static inline unsigned long long gpb_driver_context(const gpb_driver *driver)
{
    unsigned long long number = 0;
#if CUDA_VERSION >= 12000
    if (!driver->cuCtxGetId || driver->cuCtxGetId(NULL, &number)) number = 0;
#else
    (void)driver;
#endif
    return number;
}
/* cuEventRecord of an event made in that context. After the program has reset the device that crashes (driver 580, H200), where all other calls
   are refused: so the number is compared (10 ns), or the event asked. */
static inline CUresult gpb_driver_record(const gpb_driver *driver, unsigned long long made_in, CUevent event, CUstream stream)
{
    const CUresult asked = made_in ? CUDA_SUCCESS : driver->cuEventQuery(event);
    if (made_in && gpb_driver_context(driver) != made_in) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return asked && asked != CUDA_ERROR_NOT_READY ? asked : driver->cuEventRecord(event, stream);
}
/* CUDA's own name of a result: "CUDA_ERROR_OUT_OF_MEMORY". */
const char *gpb_driver_error(CUresult result);
/* After these the context is dead for good (CUDA driver API, CUresult). */
bool gpb_driver_sticky(CUresult result);

#endif
