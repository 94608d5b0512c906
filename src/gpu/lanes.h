/* SPDX-License-Identifier: MIT */
/* Lanes: what one call computes with, and which call has which. */
#ifndef GPB_LANES_H
#define GPB_LANES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "src/copy/pinned.h"
#include "src/copy/staging.h"
#include "src/gpu/device.h"
#include "src/service/spans.h"

/* Lanes of a device. Large calls take turns on the first lane, because two side by side got 0.78 to 0.87 of
   one's work done (H200, 2026-11-21). If the call there takes longer than GPB_TURN_NS, they take the next two
   as well, but never the others, so a small call does not wait for a large one's end. */
enum { GPB_LARGE_LANES = 3, GPB_LANES = 6, GPB_DEVICES = 16, GPB_TILE_EVENTS = 64,
       GPB_TABLE_BYTES = 256 << 10 };
#define GPB_TURN_NS INT64_C(100000000)
/* Bytes of rings, 124 MiB in all: of the very first lane, which a large call takes if it can, and of the
   others. With 8, 16, 32 MiB each way 4096 took 8.0, 4.9, 3.7 ms (H200: evidence/rings.md). */
enum { GPB_FIRST_RING = 32 << 20, GPB_UP_RING = 8 << 20, GPB_DOWN_RING = 4 << 20 };
_Static_assert(GPB_PLAN_LONGEST_COLUMN <= GPB_DOWN_RING / 2, "a column of C goes home in one load");

/* Factors on the device, as the program has them in the host's memory. */
typedef struct gpb_kept {
    const void *matrix;                      /* n x n, with ld */
    int64_t n, ld;
    enum gpb_type type;
    char uplo;                               /* Cholesky's triangle; 'G': LU */
    int64_t ld_arena;                        /* on the device */
} gpb_kept;

/* What one call computes with: streams, rings and an arena of device memory. One call at a time. */
typedef struct gpb_lane {
    gpb_device *device;
    CUstream stream;                         /* of kernels; the rings have their own */
    CUevent after;                           /* of the program's own work that a call must follow */
    CUevent arrived[GPB_TILE_EVENTS];        /* the strips of the last GPB_TILE_EVENTS moves have come */
    CUevent tile[GPB_TILE_EVENTS];           /* the last GPB_TILE_EVENTS tiles of C have been computed */
    CUevent freed[2][2], home[2];            /* buffers of A and B have been read; buffers of C have gone
                                                home */
    gpb_pinned words;                        /* memory of the next two: */
    uint32_t *flagged;                       /* gpb_sslice sets it if it flags a block */
    char *table;                             /* GPB_TABLE_BYTES of addresses on their way to kernels */
    gpb_staging *up, *down;
    gpb_spans *spans;                        /* for GPUBLAS_TRACE; NULL until a call is traced */
    gpb_block arena;
    gpb_kept kept;                           /* what begins arena.kept bytes behind the arena's beginning, if
                                                that is not 0 */
    int64_t wanted, asked;                   /* under the lock of gpu/lanes.c: bytes that its call waits for,
                                                or 0; the serial number of its request for memory */
    CUdeviceptr counters;                    /* 0, or GPB_MAX_STREAMK_BLOCKS words, zero whenever no Stream-K
                                                launch is at work */
    int64_t since_ns;                        /* when the lane was taken */
    bool must;                               /* the host cannot compute its call, so it goes on when the
                                                program ends */
    unsigned long long made_in;              /* the context of streams and events (gpb_driver_record) */
    unsigned life;                           /* the device's `life` when the lane's streams and memory were
                                                made */
    bool ready, busy, alone;                 /* alone: no other lane of the device was busy when this one was
                                                taken */
} gpb_lane;

/* All lanes, for lanes.c and memory.c. One lock guards what lanes share: which is busy, and how much memory
   each holds. Nothing slow happens under it. */
typedef struct gpb_lane_pool {
    pthread_mutex_t lock;
    pthread_cond_t more_room;                /* device memory was given back, or the next waiter may ask
                                                again */
    gpb_device *devices;
    int device_count;
    gpb_lane lanes[GPB_DEVICES][GPB_LANES];
    bool sweeping, freeing;                  /* the thread that frees idle memory exists; it is freeing some
                                                right now */
} gpb_lane_pool;
extern gpb_lane_pool gpb_lanes;

/* Called once the devices are started: makes their lanes. */
void gpb_lanes_make(gpb_device *first, int count);
/* Wakes all threads that wait for a lane or for memory. */
void gpb_lanes_wake(void);
/* No lane is busy. Also false if the lock is held; never waits. */
bool gpb_lanes_idle(void);

/* A lane for a small or large call, on the device where the operands live, else on the next one in turn.
   Waits while all are busy. NULL: none can be had, or the program is ending and the host can compute as well.
   The lane's context is current until gpb_lanes_give. */
gpb_lane *gpb_lanes_take(const gpb_facts *facts, bool large);
/* The idle lane that has kept those factors (all but ld_arena is compared), if there is one on the device
   where the operands live, or anywhere if they live on none. */
gpb_lane *gpb_lanes_take_kept(const gpb_facts *facts, const gpb_kept *kept);
void gpb_lanes_give(gpb_lane *lane);
/* Makes each device's first lane, so that no call has to wait for it: its 64 MiB of rings take the driver
   some 30 ms. */
void gpb_lanes_prepare(void);

/* A driver call for this lane failed; the lane is still taken. Gives the GPU up if the error is sticky,
   unless it is only because the program has reset the device since. */
void gpb_lanes_failed(const gpb_lane *lane, CUresult result);
/* Called when the GPUs are given up and no call has a lane: frees all that lanes and devices hold. */
void gpb_lanes_let_go(void);
/* An owner of blocks (memory.c): each lane's arena. */
bool gpb_lanes_block(const gpb_device *device, int number, gpb_block **idle);
/* The context is gone and with it what lanes own. Idle lanes forget it now, busy ones when they are given
   back. */
void gpb_lanes_forget(gpb_device *device);

#endif
