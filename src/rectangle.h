/* SPDX-License-Identifier: MIT */
/* Copying a rectangle of a column-major matrix: what the crew does. */
#ifndef GPB_RECTANGLE_H
#define GPB_RECTANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where `to` lies. NEAR: in a ring, in cache. FAR: in the program's matrix, so it is fetched ahead. PAST: in a matrix of which little stays
   in cache: stored past the caches. PAST pays from about 32 MiB on; a smaller C the program would have to fetch from memory again. */
enum gpb_target { GPB_TARGET_NEAR, GPB_TARGET_FAR, GPB_TARGET_PAST };

typedef struct gpb_rectangle {
    const char *from;
    char *to;
    int64_t rows, cols, ld_from, ld_to;      /* in elements; ld: between the starts of columns */
    size_t element;                          /* bytes: 4, 8, 16 */
    char uplo;                               /* 'G': all; 'U', 'L': only what of each column lies in that triangle of the whole matrix */
    int64_t row0, col0;                      /* where the rectangle's first element lies in it */
    enum gpb_target target;
    bool adds;                               /* element == 4, floats: to = from + beta * to instead of to = from; beta != 0; always FAR */
    float beta;
} gpb_rectangle;

/* `from` and `to` do not overlap; neither needs any alignment. Nothing between the columns is read or written. */
void gpb_rectangle_copy(const gpb_rectangle *rectangle);

#endif
