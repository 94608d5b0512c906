/* SPDX-License-Identifier: MIT */
/* A staging ring: pinned memory through which chunks of operands pass between the caller's memory and the
   device. The crew copies on the caller's side, and the GPU's copy engines on the other. A ring has one
   direction, and its chunks keep their order. Only the thread that owns the lane uses it. Nothing here
   waits. */
#ifndef GPB_STAGING_H
#define GPB_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/copy/crew.h"
#include "src/service/driver.h"
#include "src/copy/pinned.h"

enum {
    GPB_STAGING_CHUNKS = GPB_CREW_JOBS,
    GPB_STAGING_EVENTS = 64,
    GPB_STAGING_MIN = 32 << 10, GPB_STAGING_MAX = 256 << 10,     /* bytes of one job of the crew, or one
                                                                    column if that is more: 4 to 30 us */
    GPB_STAGING_ENOUGH = 512 << 10                                /* bytes of one copy by the driver while
                                                                     others are on their way */
};

/* A rectangle of an operand: `cols` columns of `width` bytes, which lie `pitch` bytes apart on the device. */
typedef struct gpb_chunk {
    CUdeviceptr device;
    size_t width, pitch;
    int64_t cols;
    CUevent after;                   /* NULL, or the event before which it must not be written on the
                                        device */
    bool direct;                     /* neither crew nor ring: it is `moved` once the event behind it has
                                        happened */
    bool lost;                       /* down: it is not copied home */
    int jobs;                        /* of the crew: up 0 or 1, down as many as the chunk was cut into */
    int64_t count;                   /* for the ring's user: columns of C that are home with this chunk */
    bool opens, ends_member, ends_tile;      /* for the ring's user: first of a tile of C; last of a member;
                                                last of a tile */
    gpb_copy2d_job copy;              /* between the caller's memory and the ring */
    uint64_t at, end;                /* position in the ring; see gpb_staging */
} gpb_chunk;

/* The copy engines read data that was just written at 25 GB/s from the second-level caches of the cores that
   wrote it, and at 45 GB/s from the last-level cache or from memory (an H200 and 16 cores:
   tests/bench/results/nvidia-h200/evidence/rings.md; 8 MiB up took 385 us, and 238 with streaming stores). So
   a ring is larger than those caches. In the first round through it, when the engines follow right behind the
   crew, the crew pushes its writes to the last-level cache. Streaming stores are as good for short calls, but
   memory slows them down in long ones (4096: 1.4 times). If the crew is too small to fill the link, they are
   the fastest way (4 cores: 36 GB/s instead of 25).
   Chunks pass three gates, in order.
   - Up: made (the crew copies it into the ring; after that it is packed), moved (on its way to the device),
     done (on the device, so its place in the ring is free).
   - Down: made (on its way from the device), moved (in the ring; the crew copies it home, in jobs of
     `job_bytes`), done (home). */
typedef struct gpb_staging {
    gpb_pinned pinned;
    char *ring;                      /* in `pinned` */
    size_t size;                     /* of the ring, in bytes */
    enum gpb_store_hint first, later;    /* how the crew stores up: in the first round through the ring, and
                                            later */
    unsigned long long made_in;      /* the context of stream and events (gpb_driver_record) */
    CUstream own, stream;            /* its own stream; the one of this call's copies */
    CUevent event[GPB_STAGING_EVENTS];
    uint64_t upto[GPB_STAGING_EVENTS];  /* made or moved when the event was recorded */
    uint64_t recorded, passed;       /* events */
    uint64_t head, tail;             /* bytes given out and given back since the ring was begun; a place is
                                        that modulo size */
    uint64_t made, packed, moved, done;
    size_t ready;                    /* bytes that are packed and not moved */
    size_t job_bytes;                /* of one job of the crew, or one column if that is more */
    bool open;                       /* the crew copies; else the thread that calls push or drain */
    uint64_t bytes;                  /* sent over the link in this call */
    gpb_chunk chunk[GPB_STAGING_CHUNKS];
    gpb_crew_queue crew;
} gpb_staging;

static inline gpb_chunk *gpb_staging_chunk(gpb_staging *staging, uint64_t number)
{
    return &staging->chunk[number % GPB_STAGING_CHUNKS];
}

/* Makes ring (of `size` bytes), stream and events unless they are there. A context of the device must be
   current. */
CUresult gpb_staging_ready(gpb_staging *staging, CUdevice device, size_t size);
/* The device was reset: all that was made there is gone. */
void gpb_staging_forget(gpb_staging *staging);
/* Gives the ring's memory back. */
void gpb_staging_free(gpb_staging *staging);
/* Begins with an empty ring, on the given stream, or on its own if that is NULL. crew: the crew copies, in
   jobs of `job_bytes` bytes, until gpb_staging_end, which waits for jobs under way. */
void gpb_staging_begin(gpb_staging *staging, bool crew, size_t job_bytes, CUstream stream);
/* Does a job that nobody of the crew has taken. False: there is none. */
bool gpb_staging_help(gpb_staging *staging);
void gpb_staging_end(gpb_staging *staging);

/* Up. Adds the next chunk, whose `copy` is complete except for `to`, as one job of the crew. False: no room
   now. */
bool gpb_staging_push(gpb_staging *staging, const gpb_chunk *chunk);
/* Sends what the crew has packed, and forgets what has arrived. all: also sends little while other copies are
   on their way. *busy becomes true if anything was done, apart from sending. */
CUresult gpb_staging_send(gpb_staging *staging, bool all, bool *busy);

/* Down. The next chunk can be started now. */
bool gpb_staging_has_room(const gpb_staging *staging, const gpb_chunk *chunk);
/* Starts the next chunk, whose `copy` is complete except for `from`. direct: the caller has queued the copy
   itself. */
CUresult gpb_staging_pull(gpb_staging *staging, const gpb_chunk *chunk);
/* *arrived: the next chunk has arrived in the ring. */
CUresult gpb_staging_arrived(gpb_staging *staging, bool *arrived);
/* Lets the chunk that has arrived be copied home. */
void gpb_staging_drain(gpb_staging *staging);
/* Forgets the next chunk that is home, and returns it; NULL: none is. */
const gpb_chunk *gpb_staging_drained(gpb_staging *staging);

#endif
