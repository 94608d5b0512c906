/* SPDX-License-Identifier: MIT */
/* A belt carries panels, load by load, between the caller's memory and the device, through a ring of pinned memory: the crew copies on the
   caller's side, the GPU's copy engines on the other. A belt goes one way, and everything on it keeps its order. Only the thread that
   owns the lane touches it; nothing here waits. */
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
    GPB_STAGING_MIN = 32 << 10, GPB_STAGING_MAX = 256 << 10,     /* bytes of a job of the crew's, if a column is no longer: 4 to 30 us */
    GPB_STAGING_ENOUGH = 512 << 10                                /* bytes of a copy of the driver's while others are on their way */
};

/* A rectangle of an operand: `cols` columns of `width` bytes, on the device `pitch` bytes apart. */
typedef struct gpb_chunk {
    CUdeviceptr device;
    size_t width, pitch;
    int64_t cols;
    CUevent after;                   /* NULL, or what must have happened before it may be written on the device */
    bool direct;                     /* no crew and no ring: `moved` once the event behind it has happened */
    bool lost;                       /* down: not to be copied home */
    int jobs;                        /* of the crew's: 1 or none up; down as many as the load was cut into */
    int64_t count;                   /* the owner's: columns of C that are home with it */
    bool opens, ends_member, ends_tile;      /* likewise: first of a tile of C; last of a member, of a tile */
    gpb_copy2d_job copy;              /* between the caller's memory and the ring */
    uint64_t at, end;                /* in the ring; see gpb_staging */
} gpb_chunk;

/* The engines read what has just been written at 25 GB/s from the second-level caches of the cores that wrote it, at 45 from the last level
   and from memory (an H200 and 16 cores: tests/bench/results/nvidia-h200/evidence/rings.md; 8 MiB up in 385 us, past the caches 238). So a ring is larger than
   what those caches hold; and the first time round it, when the engines are right behind the crew, what it writes is pushed on to the last
   level. Past all caches is as good for short calls, but a long one memory's pace then holds up (4096: 1.4 times). Where the crew is too
   small to fill the link that is its fastest way (4 cores: 36 GB/s, else 25).

   Loads pass three gates, in order. Up: made (the crew copies it into the ring; packed when it has), moved (on its way to the device), done
   (there: its place is free). Down: made (on its way from the device), moved (in the ring: the crew copies it home, in jobs of
   `job_bytes`), done (home). */
typedef struct gpb_staging {
    gpb_pinned pinned;
    char *ring;                      /* in it */
    size_t size;                     /* of the ring, in bytes */
    enum gpb_store_hint first, later;    /* how the crew stores up, the first time round and then */
    unsigned long long made_in;      /* the context of stream and events (gpb_driver_record) */
    CUstream own, stream;            /* its own; the one that this call's copies are queued on */
    CUevent event[GPB_STAGING_EVENTS];
    uint64_t upto[GPB_STAGING_EVENTS];  /* made or moved when the event was recorded */
    uint64_t recorded, passed;       /* events */
    uint64_t head, tail;             /* bytes handed out and given back since ever: places modulo size */
    uint64_t made, packed, moved, done;
    size_t ready;                    /* bytes packed and not moved */
    size_t job_bytes;                /* of the crew's, if a column is no longer */
    bool open;                       /* the crew copies; else whoever offers a load, or lets it land */
    uint64_t bytes;                  /* that have gone over the link in this call */
    gpb_chunk load[GPB_STAGING_CHUNKS];
    gpb_crew_queue crew;
} gpb_staging;

static inline gpb_chunk *gpb_staging_chunk(gpb_staging *belt, uint64_t number) { return &belt->load[number % GPB_STAGING_CHUNKS]; }

/* A ring of so many bytes, stream and events, as far as they are not there yet; a context of the device is current. */
CUresult gpb_staging_ready(gpb_staging *belt, CUdevice device, size_t size);
/* The device was reset. */
void gpb_staging_forget(gpb_staging *belt);
/* The ring is given back. */
void gpb_staging_free(gpb_staging *belt);
/* An empty belt, on the stream given, or on its own (NULL). `crew`: it copies, in jobs of so many bytes, until gpb_staging_end, which waits for
   what it has in hand. */
void gpb_staging_begin(gpb_staging *belt, bool crew, size_t job_bytes, CUstream stream);
/* Does a job that nobody of the crew has taken. False: there is none. */
bool gpb_staging_help(gpb_staging *belt);
void gpb_staging_end(gpb_staging *belt);

/* Up. The next load, its `copy` complete but for `to`: one job of the crew's. False: no room now. */
bool gpb_staging_push(gpb_staging *belt, const gpb_chunk *load);
/* Sends what the crew has packed, and forgets what has arrived. all: although it is little, and other copies are on their way. *busy:
   something happened. */
CUresult gpb_staging_send(gpb_staging *belt, bool all, bool *busy);

/* Down. The next load can be started now. */
bool gpb_staging_has_room(const gpb_staging *belt, const gpb_chunk *load);
/* Starts it, its `copy` complete but for `from`; direct: the caller has queued the copying. */
CUresult gpb_staging_pull(gpb_staging *belt, const gpb_chunk *load);
/* True: the next load has arrived in the ring. */
CUresult gpb_staging_arrived(gpb_staging *belt, bool *arrived);
/* That load goes home. */
void gpb_staging_drain(gpb_staging *belt);
/* The next load that is home, which is then forgotten; NULL: none. */
const gpb_chunk *gpb_staging_drained(gpb_staging *belt);

#endif
