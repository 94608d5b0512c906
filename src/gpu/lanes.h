/* SPDX-License-Identifier: MIT */
/* Lanes: what a call computes with, and who has one. */
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

/* Of a device. Large calls take turns on the first lane (two side by side got 0.78 to 0.87 of one's work done: H200, 2026-11-21); if its call
   takes longer than GPB_TURN_NS, they take the next two as well, but never the others: a small one does not wait for a large one's end. */
enum { GPB_LARGE_LANES = 3, GPB_LANES = 6, GPB_DEVICES = 16, GPB_TILE_EVENTS = 64, GPB_TABLE_BYTES = 256 << 10 };
#define GPB_TURN_NS INT64_C(100000000)
/* Bytes of rings, 124 MiB in all: of the very first lane, where a large call goes if it can, and of the others. With 8, 16, 32 MiB each way 4096 took 8.0, 4.9, 3.7 ms (H200: evidence/rings.md). */
enum { GPB_FIRST_RING = 32 << 20, GPB_UP_RING = 8 << 20, GPB_DOWN_RING = 4 << 20 };
_Static_assert(GPB_PLAN_LONGEST_COLUMN <= GPB_DOWN_RING / 2, "a column of C goes home in one load");

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
    gpb_staging *up, *down;
    gpb_block arena;
    int64_t wanted, asked;                   /* under the lock of gpu/lanes.c: bytes that its call waits for, or 0; when that asked for memory: a number that grows */
    CUdeviceptr counters;                    /* 0, or GPB_MAX_STREAMK_BLOCKS words: zero whenever no launch that shares out k is at work */
    int64_t since_ns;                        /* when it was taken */
    unsigned long long made_in;              /* the context of streams and events (gpb_driver_record) */
    unsigned life;                           /* the device's when what the lane has was made */
    bool ready, busy, alone;                 /* alone: no other lane of the device was busy when this one was taken */
} gpb_lane;

/* All lanes, for lanes.c and memory.c. One lock guards what lanes share (who is busy, who holds how much); nothing slow happens under it. */
typedef struct gpb_lane_pool {
    pthread_mutex_t lock;
    pthread_cond_t more_room;                /* somebody gave device memory back, or may ask again */
    gpb_device *devices;
    int device_count;
    gpb_lane lanes[GPB_DEVICES][GPB_LANES];
    bool sweeping, freeing;                  /* a thread is about that gives idle memory back; and it is just doing so */
} gpb_lane_pool;
extern gpb_lane_pool gpb_lanes;

/* The devices that were started: makes their lanes. */
void gpb_lanes_make(gpb_device *first, int count);
/* Those who wait for a lane look again. */
void gpb_lanes_wake(void);
/* No lane is busy. False as well where that cannot be seen at once; never waits. */
bool gpb_lanes_idle(void);

/* A lane for a call of that size, on the device where the operands live, else on the next in turn; waits while all are busy. NULL: none can
   be had, or the program is ending and the host can compute as well. Its context is current until gpb_lanes_give. */
gpb_lane *gpb_lanes_take(const gpb_facts *facts, bool large);
void gpb_lanes_give(gpb_lane *lane);
/* Makes each device's first lane, whose 64 MiB of rings take the driver some 30 ms, before a call has to wait for that. */
void gpb_lanes_prepare(void);

/* A driver call for the lane, which is still taken, failed: the GPU is given up if that is for good, and not for the program's having
   reset it since. */
void gpb_lanes_failed(const gpb_lane *lane, CUresult result);
/* The GPUs are given up and nobody has a lane: gives back all that lanes and devices hold. */
void gpb_lanes_let_go(void);
/* An owner of blocks (memory.h): each lane's arena. */
bool gpb_lanes_block(const gpb_device *device, int number, gpb_block **idle);
/* What idle lanes have is gone with the context; what busy ones have, when they are given back. */
void gpb_lanes_forget(gpb_device *device);

#endif
