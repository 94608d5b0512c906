/* SPDX-License-Identifier: MIT */
/* The stages of a run (run/run.c): how far each has got in the schedule, and the state that they share. */
#ifndef GPB_PIPELINE_H
#define GPB_PIPELINE_H

#include "src/run/operand.h"

enum { GPB_STAGE_AHEAD = GPB_TILE_EVENTS };      /* moves that one stage may be ahead of the next */

/* Flagged blocks: gpb_sslice finds rows for which slices are not accurate enough, flags them block by block
   (guard words, gemm_args.h) and sets the lane's `flagged`. A SLICED kernel leaves the flagged blocks of C to
   the plan's `wide` and `fallback` kernels. These are launched behind each tile (`fallback_queued`). But if
   all that they need stays in place to the end, they are launched only once `flagged` is seen to be set (the
   plan's `speculative`), because flags are rare and two empty launches cost more than small tiles do. If they
   fail where C is in place, the flagged blocks are missing (job.h). */

typedef struct gpb_stage {
    gpb_schedule_cursor cursor;
    gpb_move move;                       /* the next move */
    bool ended;
    int64_t moves, tiles;                /* done before it; tiles: those with the last of k */
    int product;                         /* posting: whose strip comes, 0 or of SYR2K 1 */
    int64_t member, row, col;            /* done of the move */
} gpb_stage;

typedef struct gpb_pipeline {
    gpb_run run;
    const gpb_driver *driver;
    gpb_stage post, launch, fetch, land;
    gpb_move only;                       /* the last move that computed a tile of a C in place */
    uint64_t sent_by[GPB_STAGE_AHEAD];    /* chunks in the ring up when a move's strip was complete */
    bool staged_strip;                   /* the kernels do not wait yet for a strip in the ring */
    CUevent direct_strip;                /* nor for strips that were queued at once: the event of the last;
                                            NULL: none */
    bool staged, home;                   /* something goes by a ring; C goes home to the caller */
    bool fallback_queued;                /* a block was flagged, so fallback kernels are launched: */
    int64_t fallback_queued_from;        /* for the tiles from this one on */
    int idle;                            /* turns in a row without anything to do, 0.3 us each */
    int patience;                        /* after this many turns the thread does one of the crew's jobs */
} gpb_pipeline;

/* True if the move is the last that adds to its tile of C. */
static inline bool gpb_stage_ends_tile(const gpb_move *move) { return move->tile.rows && move->last; }

gpb_stage gpb_stage_begin(const gpb_call *call, const gpb_plan *plan);
void gpb_stage_advance(gpb_stage *stage);
/* Goes to the next move that completes a tile of C; past: beyond the current move. */
void gpb_stage_to_tile(gpb_stage *stage, bool past);

/* Each goes as far as it can, and sets *busy if it has done anything. */
CUresult gpb_upload_push(gpb_pipeline *flow, bool *busy);  /* upload.c: strips of A and B into the ring up */
CUresult gpb_download_pull(gpb_pipeline *flow, bool *busy);  /* download.c: tiles of C into the ring down, */
CUresult gpb_download_drain(gpb_pipeline *flow, bool *busy);         /* from the ring to the crew, */
void gpb_download_commit(gpb_pipeline *flow, bool *busy);           /* and counted when they are home */

/* True if the driver itself writes to the caller's memory, because nothing is to be changed there. */
bool gpb_download_direct(const gpb_run *run);
/* True if a block of C is flagged, and no tile has been computed with the fallback kernels. */
bool gpb_download_flagged(const gpb_pipeline *flow);
/* Has the driver copy columns [col, col + cols) of member l of a tile of C. up: to the device, of a C that
   only the driver can reach, because beta C is added on the device. Else home. */
CUresult gpb_download_copy_c(gpb_pipeline *flow, const gpb_move *move, int64_t l, int64_t col, int64_t cols,
                             bool up);

#endif
