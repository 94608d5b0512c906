/* SPDX-License-Identifier: MIT */
/* The state of the GPUs behind gpu.h: devices, their kernels, lanes. */
#ifndef GPB_GPU_STATE_H
#define GPB_GPU_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/kernel_table.h"
#include "src/service/driver.h"
#include "src/gpu/gpu.h"
#include "src/copy/staging.h"
#include "src/copy/pinned.h"

/* Functions of a device: the rows of gemm.def, then these (gpu/kernels.h). */
enum {
    GPB_FUNCTION_PACK = GPB_KERNELS, GPB_FUNCTION_UNPACK, GPB_FUNCTION_REDUCE,
#define SPLITTER(name, image, most, sharers) GPB_FUNCTION_##name,
#include "kernels/split.def"
#undef SPLITTER
    GPB_FUNCTIONS
};

/* Of a device. Large calls take turns on the first lane (two side by side got 0.78 to 0.87 of one's work done: H200, 2026-11-21); if its call
   takes longer than GPB_TURN_NS, they take the next two as well, but never the others: a small one does not wait for a large one's end. */
enum { GPB_LARGE_LANES = 3, GPB_LANES = 6, GPB_DEVICES = 16, GPB_TILE_EVENTS = 64, GPB_TABLE_BYTES = 256 << 10 };
#define GPB_TURN_NS INT64_C(100000000)
/* Device memory that no call has used for so long goes back: the program, or another process, may want it. To have it again costs 1.8 ms
   (28 GiB: H200). */
#define GPB_IDLE_NS INT64_C(2000000000)
/* Bytes of rings, 124 MiB in all: of the very first lane, where a large call goes if it can, and of the others. With 8, 16, 32 MiB each way 4096 took 8.0, 4.9, 3.7 ms (H200: evidence/rings.md). */
enum { GPB_FIRST_RING = 32 << 20, GPB_UP_RING = 8 << 20, GPB_DOWN_RING = 4 << 20 };
_Static_assert(4 * GPB_LONGEST_COLUMN <= GPB_DOWN_RING / 2, "a column of C goes home in one load");

/* One GPU of GPUBLAS_DEVICES. */
typedef struct gpb_device {
    CUdevice handle;
    CUcontext context;                       /* the primary context: shared with the program's CUDA runtime */
    _Atomic uint64_t id;                     /* of the context, or (if there is one) of the canary: other ones after a reset; 0: unknown */
    _Atomic CUdeviceptr canary;
    atomic_uint life;                        /* resets that were noticed; goes up under the lock of gpu/lanes.c */
    int ordinal, arch, sms, concurrent;      /* concurrent: the host may use managed memory while kernels are at work */
    bool pooled;                             /* arenas come from the device's pool: see gpu/lanes.c */
    int64_t budget, held;                    /* bytes all lanes may hold, and hold now (under the lock of gpu/lanes.c) */
    char name[96];
    CUmodule module[GPB_IMAGES];
    CUresult missing[GPB_IMAGES];            /* why an image could not be loaded */
    int64_t again_ns[GPB_IMAGES];            /* if that was for want of memory: when it may be tried again */
    _Atomic(CUfunction) function[GPB_FUNCTIONS];        /* NULL until it is found, with its attributes set */
    int clusters[GPB_KERNELS];               /* of a SPLIT kernel that the device holds at once; set before its function is */
} gpb_device;

/* What one call computes with: streams, belts and an arena of device memory. One call at a time. */
typedef struct gpb_lane {
    gpb_device *device;
    CUstream stream;                         /* of kernels; the belts have their own */
    CUevent after;                           /* of the program's own work that a call must follow */
    CUevent arrived[GPB_TILE_EVENTS];        /* the strips of the last so many moves have come */
    CUevent tile[GPB_TILE_EVENTS];           /* the last so many tiles of C have been computed */
    CUevent freed[2][2], home[2];            /* buffers of A and B have been read, of C have gone home */
    gpb_pinned words;                        /* holds the next two: */
    uint32_t *notice;                        /* gpb_ssplit sets it if it marks a block */
    char *table;                             /* GPB_TABLE_BYTES on their way to kernels */
    gpb_belt *up, *down;
    CUdeviceptr arena;
    int64_t arena_bytes;                     /* this and the next two under the lock of gpu/lanes.c */
    int64_t wanted, asked;                   /* bytes that its call waits for, or 0; when that asked for memory: a number that grows */
    CUdeviceptr counters;                    /* 0, or GPB_MOST_SHARERS words: zero whenever no launch that shares out k is at work */
    int64_t since_ns, until_ns;              /* when it was taken, and given back */
    unsigned long long made_in;              /* the context of streams and events (gpb_driver_record) */
    unsigned life;                           /* the device's when what the lane has was made */
    bool ready, busy, alone;                 /* alone: no other lane of the device was busy when this one was taken */
} gpb_lane;

/* Gives the GPU up for the rest of the process: after a sticky error. */
void gpb_gpu_give_up(const char *why);
/* This is a forked child of a process that had started the GPUs: the driver cannot be asked either. */
bool gpb_gpu_forked(void);
/* Before the GPU is started: this thread's context, if it has one, says which one the program uses. */
void gpb_gpu_note_device(void);
/* Seconds until the GPU is ready: 0 if nothing is to be waited for. */
double gpb_gpu_start_left(void);
/* The program is ending: nothing new is begun. */
bool gpb_gpu_leaving(void);
/* Then: a call that the host is to compute, or to finish, waits a moment for the end to come. */
void gpb_gpu_await_end(void);

enum gpb_place gpb_gpu_place(const void *pointer);
/* The context that an address on a GPU belongs to; NULL: none, or unknown. A context is current. */
CUcontext gpb_gpu_context_of(const void *pointer);

/* The devices that were started: makes their lanes. */
void gpb_gpu_lanes(gpb_device *first, int count);
/* Those who wait for a lane look again. */
void gpb_gpu_wake(void);
/* No lane is busy. False as well where that cannot be seen at once; never waits. */
bool gpb_gpu_idle(void);

/* A lane for a call of that size, on the device where the operands live, else on the next in turn; waits while all are busy. NULL: none can
   be had, or the program is ending and the host can compute as well. Its context is current until gpb_gpu_give. */
gpb_lane *gpb_gpu_take(const gpb_facts *facts, bool large);
void gpb_gpu_give(gpb_lane *lane);
/* Makes each device's first lane, whose 64 MiB of rings take the driver some 30 ms, before a call has to wait for that. */
void gpb_gpu_prepare(void);
/* Makes the lane's arena at least `bytes` large; waits while calls that asked before have the room for it. False: not within the budget,
   out of memory, or the GPU is given up. */
bool gpb_gpu_arena(gpb_lane *lane, int64_t bytes);
/* The lane's counters are there. False: out of memory. */
bool gpb_gpu_counters(gpb_lane *lane);

/* gpu/context.c: whether the device's context is the one that our streams, functions and memory are of. */
bool gpb_gpu_same(const gpb_device *device);
/* Makes the context current, until gpb_gpu_exit; after a reset another one, in which all is made anew as it is needed. */
CUresult gpb_gpu_enter(gpb_device *device);
void gpb_gpu_exit(void);
/* Notes by what a context that was just made is to be known. */
void gpb_gpu_identify(gpb_device *device);
/* A driver call for the lane, which is still taken, failed: the GPU is given up if that is for good, and not for the program's having
   reset it since. */
void gpb_gpu_failed(const gpb_lane *lane, CUresult result);
/* Given up: what is held of the machine is given back as soon as nobody is at work in it; never in a child or at the program's end. */
void gpb_gpu_let_go(void);
/* That, of all lanes and devices; nobody has one. */
void gpb_gpu_let_lanes_go(void);
/* What idle lanes have is gone with the context; what busy ones have, when they are given back. */
void gpb_gpu_forget_lanes(gpb_device *device);

/* The program records a graph from a blocking stream, in whatever thread: the legacy stream, which waits for such streams, is not to be used.
   Nobody's work need then be followed there. A context is current. */
bool gpb_gpu_records_graph(void);

/* After these the context is dead for good (CUDA driver API, CUresult). */
bool gpb_gpu_sticky(CUresult result);
/* The devices started; none once the GPU is given up. */
int gpb_gpu_devices(gpb_device **devices);

#endif
