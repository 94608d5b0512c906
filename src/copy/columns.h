/* SPDX-License-Identifier: MIT */
/* A matrix's columns in another order, in place. */
#ifndef GPB_COPY_COLUMNS_H
#define GPB_COPY_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of a matrix, column-major, of which each piece is moved along the walk. */
typedef struct gpb_columns_job {
    char *a;                                 /* the first of the rows in column 0 */
    int64_t rows, ld;
    size_t element;                          /* bytes */
    const int32_t *walk;
    int64_t count;
} gpb_columns_job;

/* Bytes of a column that are moved at once: so at order 8192 (d) there are 32 jobs. Not tuned. */
enum { GPB_COLUMNS_BYTES = 2048 };

/* Column j is to be what column from[j] is, 0 <= j < n. The cycles of that order, one after the other, each
   from one column to the one that takes its place; the first of each as its complement. At most n; returns
   how many. from: is all -1 afterwards. */
int64_t gpb_columns_walk(int32_t *from, int64_t n, int32_t *walk);
/* Moves the columns. */
void gpb_columns_move(const gpb_columns_job *job);

#endif
