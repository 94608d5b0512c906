/* SPDX-License-Identifier: MIT */
/* libcuda's entry points as a struct of pointers. They are found by dlopen, so the library does not need CUDA
   to be loaded. */
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

/* Returns once no other thread is inside dlopen. Opening and starting libcuda would have to wait for that
   thread. */
void gpb_driver_pass_linker(void);
/* The entry points, opened by the first call; NULL if there is no libcuda, or if it lacks some of them. */
const gpb_driver *gpb_driver_get(void);
/* The same; *why becomes NULL or a phrase that says what is missing. */
const gpb_driver *gpb_driver_open(const char **why);
/* Exchanges the mode in which this thread's calls and a graph that the program records (in any thread) affect
   each other. Calls of ours that are not to be recorded need CU_STREAM_CAPTURE_MODE_RELAXED. In other modes
   calls such as cuMemAlloc and cuEventQuery spoil a graph that is recorded anywhere in the process. CUDA must
   be initialised. */
void gpb_driver_capture_mode(CUstreamCaptureMode *mode);
/* The number of the current context, which changes with each reset; 0: unknown (before CUDA 12). */
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
/* cuEventRecord of an event that was made in the context with that number. After the program has reset the
   device, cuEventRecord crashes (driver 580, H200), while all other calls return an error. So this compares
   the context's number first (10 ns), or queries the event if the number is unknown. */
static inline CUresult gpb_driver_record(const gpb_driver *driver, unsigned long long made_in, CUevent event,
                                         CUstream stream)
{
    const CUresult asked = made_in ? CUDA_SUCCESS : driver->cuEventQuery(event);
    if (made_in && gpb_driver_context(driver) != made_in) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return asked && asked != CUDA_ERROR_NOT_READY ? asked : driver->cuEventRecord(event, stream);
}
/* CUDA's own name of a result, such as "CUDA_ERROR_OUT_OF_MEMORY". */
const char *gpb_driver_error(CUresult result);
/* After such an error the context cannot be used any more (CUDA driver API, CUresult). */
bool gpb_driver_sticky(CUresult result);

#endif
