/* SPDX-License-Identifier: MIT */
/* A copy in the arena of a matrix in device memory that is computed where it lies: after a failure that the
   context survives, the matrix becomes what it was. Pieces of it are copied in the order in which they are
   written to, ahead of that. */
#ifndef GPB_BACKUP_H
#define GPB_BACKUP_H

#include "src/run/carry.h"

enum { GPB_BACKUP_PIECES = 8 };

typedef struct gpb_backup {
    gpb_lane *lane;              /* copies are in the stream of its ring up; lane->tile has their events */
    gpb_carry_matrix of;
    bool by_rows;                /* pieces are rows, else columns */
    bool forwards;               /* from the first on */
    int64_t piece;               /* rows or columns of one */
    int count, queued, awaited;
} gpb_backup;

gpb_backup gpb_backup_begin(gpb_lane *lane, const gpb_carry_matrix *of, bool by_rows, bool forwards);
/* What is queued into the lane's stream from here on may write to that block. */
CUresult gpb_backup_await(gpb_backup *backup, int64_t row, int64_t col, int64_t rows, int64_t cols);
/* Nothing is queued any more. Waits until the matrix is as it was. */
void gpb_backup_put_back(const gpb_backup *backup);

#endif
