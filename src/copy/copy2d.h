/* SPDX-License-Identifier: MIT */
/* Copying a rectangle of a column-major matrix: what the crew does. */
#ifndef GPB_COPY2D_H
#define GPB_COPY2D_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where `to` lies. NEAR: in a ring, in cache; SHARED: the same, and pushed on to the last level at once, for the copy engines (half a core's
   speed). FAR: in the program's matrix, so it is fetched ahead. PAST: a matrix of which little stays in cache, or a ring that is read once:
   stored past the caches. For matrices that pays from about 32 MiB on; a smaller C the program would have to fetch from memory again. */
enum gpb_store_hint { GPB_STORE_CACHED, GPB_STORE_DEMOTED, GPB_STORE_PREFETCHED, GPB_STORE_STREAMING };

typedef struct gpb_copy2d_job {
    const char *from;
    char *to;
    int64_t rows, cols, ld_from, ld_to;      /* in elements; ld: between the starts of columns */
    size_t element;                          /* bytes: 4, 8, 16 */
    char uplo;                               /* 'G': all; 'U', 'L': only what of each column lies in that triangle of the whole matrix */
    int64_t row0, col0;                      /* where the rectangle's first element lies in it */
    enum gpb_store_hint target;
    bool adds;                               /* element == 4, floats: to = from + beta * to instead of to = from; beta != 0; always FAR */
    float beta;
} gpb_copy2d_job;

/* `from` and `to` do not overlap; neither needs any alignment. Nothing between the columns is read or written. */
void gpb_copy2d(const gpb_copy2d_job *rectangle);

#endif
