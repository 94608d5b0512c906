/* SPDX-License-Identifier: MIT */
/* libcuda's entry points as a struct of pointers, filled by dlopen: the library has no CUDA in its ELF needs. */
#ifndef GPB_DRIVER_H
#define GPB_DRIVER_H

#include <cuda.h>

typedef struct gpb_driver {
#define DRIVER(function) __typeof__(&function) function;
#define OPTIONAL(function) DRIVER(function)
#include "src/driver.def"
#undef OPTIONAL
#undef DRIVER
} gpb_driver;

/* The entry points; NULL where there is no libcuda, or one that lacks some of them (why, if not NULL, gets a phrase). Opened once. */
const gpb_driver *gpb_driver_open(const char **why);
/* Exchanges how this thread's calls and a graph that the program is recording (in any thread) bear on one another. Around calls that are
   not recorded it is to be CU_STREAM_CAPTURE_MODE_RELAXED, or they spoil that graph: cuMemAlloc or cuEventQuery would, anywhere in the
   process. CUDA is initialised. */
void gpb_driver_capture_mode(CUstreamCaptureMode *mode);
/* cuEventRecord. Of an event from before the program reset the device it crashes (driver 580, H200), where cuEventQuery says what is wrong, as all
   its other calls do. */
static inline CUresult gpb_driver_record(const gpb_driver *driver, CUevent event, CUstream stream)
{
    const CUresult result = driver->cuEventQuery(event);
    return result && result != CUDA_ERROR_NOT_READY ? result : driver->cuEventRecord(event, stream);
}
/* CUDA's own name of a result: "CUDA_ERROR_OUT_OF_MEMORY". */
const char *gpb_driver_error(CUresult result);

#endif
