/* SPDX-License-Identifier: MIT */
/* The walkers of a run (run/run.c): who has got how far on the way through the schedule, and what the run is told by. */
#ifndef GPB_PIPELINE_H
#define GPB_PIPELINE_H

#include "src/run/operand.h"

enum { GPB_STAGE_AHEAD = GPB_TILE_EVENTS };      /* moves that one walker may be before the next */

/* Rows that slices do not do justice to: gpb_ssplit marks them block by block (guard words, gemm_args.h) and sets the lane's `notice`. A
   SPLIT kernel leaves the blocks of C beside them to the plan's `wide` kernel and `fallback`. These are launched behind each tile
   (`guarded`); or, where all that they need stays where it is to the end, only once the notice is seen (the plan's `speculative`: seldom is
   anything marked, and two launches for nothing cost more than small tiles do). If they fail where C is in place, C is `torn`. */

typedef struct gpb_stage {
    gpb_schedule_cursor walk;
    gpb_move move;                       /* the next to be dealt with */
    bool ended;
    int64_t moves, tiles;                /* dealt with before it; tiles: with the last of k */
    int64_t member, row, col;            /* of the move, dealt with */
} gpb_stage;

typedef struct gpb_pipeline {
    gpb_run run;
    const gpb_driver *driver;
    gpb_stage post, launch, fetch, land;
    gpb_move only;                       /* the last that was launched with a tile of a C in place */
    uint64_t sent_by[GPB_STAGE_AHEAD];    /* loads made when a move's strip was posted whole */
    bool staged_strip;                   /* strips have been sent that the kernels do not wait for yet: some by the ring; */
    CUevent direct_strip;                /* the last that was queued at once has come; NULL: none */
    bool staged, home;                   /* something goes by a ring; C goes home to the caller */
    bool guarded;                        /* one was: */
    int64_t guarded_from;                /* tiles from this one on were computed with these kernels */
    int idle;                            /* turns in a row in which nothing was to be done: 0.3 us each; */
    int patience;                        /* after so many the conductor does a job of the crew's */
} gpb_pipeline;

/* The move is the last that adds to its tile of C. */
static inline bool gpb_stage_ends_tile(const gpb_move *move) { return move->tile.rows && move->last; }

gpb_stage gpb_stage_begin(const gpb_call *call, const gpb_plan *plan);
void gpb_stage_advance(gpb_stage *walker);
/* To the next move that completes a tile of C; past: beyond the one at hand. */
void gpb_stage_to_tile(gpb_stage *walker, bool past);

/* Each goes as far as it can, and sets *busy if that was anywhere. */
CUresult gpb_upload_push(gpb_pipeline *flow, bool *busy);         /* run/upload.c: strips of A and B to the belt up */
CUresult gpb_download_pull(gpb_pipeline *flow, bool *busy);        /* run/download.c: tiles of C onto the belt down, ... */
CUresult gpb_download_drain(gpb_pipeline *flow, bool *busy);         /* ... from its ring to the crew, ... */
void gpb_download_commit(gpb_pipeline *flow, bool *busy);           /* ... and counted when they are home */

/* The driver writes to the caller's memory itself: nothing is to be added there. */
bool gpb_download_direct(const gpb_run *run);
/* A block of C is marked, and no tile has been computed with the kernels for that. */
bool gpb_download_flagged(const gpb_pipeline *flow);
/* Columns [col, col + cols) of a tile of C, of its member l, by the driver: up, of a C that only it can reach, where beta C is added on the
   device; or home. */
CUresult gpb_download_copy_c(gpb_pipeline *flow, const gpb_move *move, int64_t l, int64_t col, int64_t cols, bool up);

#endif
