/* SPDX-License-Identifier: MIT */
/* One GPU as this process holds it. */
#ifndef GPB_DEVICE_H
#define GPB_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dispatch/kernel_table.h"
#include "src/service/driver.h"

/* What each type has one function for: passes over operands, and the rows of solve.def (GPB_PASS_swap ...).
   */
enum gpb_pass {
    GPB_PASS_PACK, GPB_PASS_UNPACK, GPB_PASS_REDUCE, GPB_PASS_COMBINE,
#define SOLVE(name, arguments, threads, begins) GPB_PASS_##name,
#include "kernels/solve.def"
#undef SOLVE
    GPB_PASSES
};

/* Functions of a device: the rows of gemm.def, the passes of each type, the rows of slicer.def
   (gpu/kernels.h). */
enum {
    GPB_FUNCTION_PASSES = GPB_KERNELS, GPB_FUNCTION_SLICERS = GPB_FUNCTION_PASSES + GPB_TYPES * GPB_PASSES,
    GPB_FUNCTIONS = GPB_FUNCTION_SLICERS + GPB_SLICERS
};

/* One GPU of GPUBLAS_DEVICES. */
typedef struct gpb_device {
    CUdevice handle;
    CUcontext context;                       /* the primary context, shared with the program's CUDA runtime */
    _Atomic uint64_t id;                     /* of the context, or of the canary if there is one; changes with
                                                a reset; 0: unknown */
    _Atomic CUdeviceptr canary;
    atomic_uint life;                        /* number of resets noticed; written under the lock of
                                                gpu/lanes.c */
    int ordinal, arch, sms, concurrent;      /* concurrent: the host may use managed memory while kernels
                                                run */
    bool pooled;                             /* arenas come from the device's pool: see get_memory in
                                                gpu/memory.c */
    int64_t budget, held;                    /* bytes that all lanes may hold, and hold now (under the lock of
                                                gpu/lanes.c) */
    char name[96];
    CUmodule module[GPB_IMAGES];
    CUresult missing[GPB_IMAGES];            /* why an image could not be loaded */
    int64_t again_ns[GPB_IMAGES];            /* if memory was short: when loading may be tried again */
    _Atomic(CUfunction) function[GPB_FUNCTIONS];  /* NULL until it is found and its attributes are set */
    int clusters[GPB_KERNELS];               /* of a kernel in clusters: how many the device holds at once;
                                                set before its function is */
} gpb_device;

/* A piece of a device's memory. Each lane holds one, its arena. */
typedef struct gpb_block {
    CUdeviceptr at;                          /* 0: no memory */
    int64_t kept;                            /* bytes that a call may have without touching what an earlier
                                                call has left behind them; 0: nothing is left */
    int64_t bytes;                           /* counted in the device's `held`; this field and the rest are
                                                under the lock of gpu/lanes.c */
    CUstream stream;                         /* the stream it was allocated on, if it came from the device's
                                                pool */
    unsigned life;                           /* the device's `life` when it was allocated */
    int64_t until_ns;                        /* when it was last in use */
} gpb_block;

/* The devices that were started; none once the GPU is given up. Defined in gpu.c. */
int gpb_device_list(gpb_device **devices);

#endif
