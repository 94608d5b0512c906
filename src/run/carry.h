/* SPDX-License-Identifier: MIT */
/* Whole matrices between the program's memory and a lane's arena, column by column, while the lane's stream
   computes on those that are there; by crew and ring where they are in ordinary memory. A product's operands
   come in strips instead (upload.c, download.c). */
#ifndef GPB_CARRY_H
#define GPB_CARRY_H

#include "dispatch/facts.h"
#include "dispatch/resident.h"
#include "src/gpu/lanes.h"

typedef struct gpb_carry_matrix {
    void *caller;                /* column-major, with ld */
    CUdeviceptr arena;           /* with ld_arena */
    int64_t rows, cols, ld, ld_arena;
    enum gpb_type type;
    char uplo;                   /* 'U', 'L': only that triangle is read or written; 'G': all */
    bool unit;                   /* of a triangle, the diagonal neither */
    int64_t shift;               /* of a triangle, its columns to the left of these */
    enum gpb_place place;        /* of the caller's */
    bool backwards;              /* its last column is the first */
    bool at_once;                /* up: in pieces as large as may be, if it is not in the host's memory */
    bool again;                  /* down: what goes home before may lie in its place, so all of that must be
                                    home first */
} gpb_carry_matrix;

enum { GPB_CARRY_MOST = 1 + GPB_RESIDENT_PANELS };       /* matrices, or pieces of them */

/* The row that a rectangle's first row has for copies, which know triangles with their diagonal alone. */
static inline int64_t gpb_carry_row(const gpb_carry_matrix *x, int64_t row)
{
    return !x->unit ? row : x->uplo == 'L' ? row - 1 : row + 1;
}

/* The first of the matrix's columns that are number `col` to `end`, exclusive, of those that are carried. */
static inline int64_t gpb_carry_first(const gpb_carry_matrix *x, int64_t col, int64_t end)
{
    return x->backwards ? x->cols - end : col;
}

/* Columns from `col` on, but not `end`, as a chunk of at most so many bytes, or one column. */
gpb_chunk gpb_carry_chunk(const gpb_carry_matrix *x, bool up, int64_t col, int64_t end, size_t most);

/* Matrices in one direction, one after the other; their columns are numbered through. */
typedef struct gpb_carry {
    gpb_lane *lane;
    gpb_carry_matrix matrix[GPB_CARRY_MOST];
    int count;                   /* matrices */
    bool up;
    int64_t queued;              /* columns that are given to the ring or to the driver */
    int64_t moved;               /* up: columns on their way, in order of the ring's stream */
    int64_t followed;            /* columns for which the lane's stream waits; down: the ring's */
    int64_t ready;               /* down: columns that are released */
    /* Down: releases, and of how many the ring's stream waits for the event. It does so when all columns of
       those before are queued: else these would wait, too. until: the columns of the last ones. */
    unsigned releases, awaited;
    int64_t until[GPB_TILE_EVENTS];
    int64_t done;                /* down: columns that are home; the others are untouched, if the caller's
                                    memory is the host's */
    const int32_t *verdict;      /* down: NULL, or a word of pinned memory that the device writes: once it is
                                    not `fine`, nothing more goes home */
    int32_t fine;
    bool (*may_write)(void *of); /* down: NULL, or nothing goes home while it is false. It does not wait */
    void *of;
    uint64_t counted;            /* chunks of the ring that `moved` knows of */
    unsigned events;             /* up: recorded */
    int64_t bytes;               /* over the link */
} gpb_carry;

gpb_carry gpb_carry_begin(gpb_lane *lane, bool up, const gpb_carry_matrix *matrices, int count);
static inline int64_t gpb_carry_columns(const gpb_carry *carry)
{
    int64_t columns = 0;
    for (int i = 0; i < carry->count; i++) columns += carry->matrix[i].cols;
    return columns;
}
/* Goes on as far as it can without waiting. */
CUresult gpb_carry_go_on(gpb_carry *carry);
/* Up: what is queued into the lane's stream from here on has the first `columns` columns. Returns once they
   are on their way. Meanwhile `beside` goes on, too, if it is not NULL. */
CUresult gpb_carry_await(gpb_carry *carry, int64_t columns, gpb_carry *beside);
/* Down: what the lane's stream has by now completes the first `columns` columns. */
CUresult gpb_carry_release(gpb_carry *carry, int64_t columns);
/* Down: the verdict is not fine. */
bool gpb_carry_halted(const gpb_carry *carry);
/* Down: returns when all released columns are home, or it has halted. */
CUresult gpb_carry_finish(gpb_carry *carry);
/* Nothing uses the ring any more. result: after a failure the stream is waited for. */
void gpb_carry_end(gpb_carry *carry, CUresult result);

#endif
