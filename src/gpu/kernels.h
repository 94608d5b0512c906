/* SPDX-License-Identifier: MIT */
/* Kernels on a device: found once, launched often. */
#ifndef GPB_KERNELS_H
#define GPB_KERNELS_H

#include "dispatch/call.h"
#include "kernels/solve_args.h"
#include "src/gpu/device.h"

/* The function number of a row of gemm.def. */
static inline int gpb_kernels_number(const gpb_kernel *kernel) { return (int)(kernel - gpb_kernels); }

/* The function number of a row of slicer.def. */
static inline int gpb_kernels_slicer(const gpb_slicer *slicer)
{
    return GPB_FUNCTION_SLICERS + (int)(slicer - gpb_slicers);
}

/* The function number of a type's pass. */
static inline int gpb_kernels_pass(enum gpb_pass pass, enum gpb_type type)
{
    return GPB_FUNCTION_PASSES + (int)type * GPB_PASSES + (int)pass;
}

/* The function number of the kernel for a batch of TRSM. */
static inline int gpb_kernels_systems(const gpb_call *call)
{
    return gpb_kernels_pass(call->k <= GPB_SMALL_SYSTEM ? GPB_PASS_small_systems : GPB_PASS_systems,
                            call->type);
}

/* An address in device memory as arguments of kernels have it. */
static inline void *gpb_pointer(CUdeviceptr at) { return (void *)(uintptr_t)at; }

/* Function `which` on the device whose context is current. Loads its image at first use. */
CUresult gpb_kernels_find(gpb_device *device, int which, CUfunction *function);

/* The device has clusters, and so has the code that it runs. */
bool gpb_kernels_have_clusters(const gpb_device *device);

/* The device was reset: forgets images, functions, and which images could not be loaded. */
void gpb_kernels_forget(gpb_device *device);

/* One launch: blocks x 1 x GPB_GRID_Z(members) thread blocks. The function's row says how many threads and
   how much shared memory each has. */
typedef struct gpb_launch {
    int which;
    int64_t blocks, members;
    int threads;                 /* of a block; 0: as many as its row says, which else are the most */
    void *args;
    bool one_cluster;            /* its blocks are one cluster (sm_90) */
    bool cooperative;            /* its blocks wait for each other, so all must be on the device at once */
    int64_t smem;                /* dynamic shared memory, if it is more than that of the row */
} gpb_launch;
CUresult gpb_kernels_launch(gpb_device *device, CUstream stream, const gpb_launch *launch);

#endif
