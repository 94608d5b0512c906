/* SPDX-License-Identifier: MIT */
/* Copies of rectangles of column-major matrices: what the crew does. */
#ifndef GPB_COPY2D_H
#define GPB_COPY2D_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/type.h"

/* How the target is stored to.
   - CACHED: a ring, which stays in cache.
   - DEMOTED: a ring, pushed to the last-level cache at once, for the copy engines. It takes twice the time.
   - PREFETCHED: the program's matrix, which is fetched into the cache ahead of the stores.
   - STREAMING: stores that bypass the caches, for a matrix of which little stays in cache, or a ring that is
     read once. For matrices it pays from about 32 MiB on; the program would have to fetch a smaller C from
     memory again. */
enum gpb_store_hint { GPB_STORE_CACHED, GPB_STORE_DEMOTED, GPB_STORE_PREFETCHED, GPB_STORE_STREAMING };

typedef struct gpb_copy2d_job {
    const char *from;
    char *to;
    int64_t rows, cols, ld_from, ld_to;      /* in elements; ld: from the start of a column to that of the
                                                next */
    size_t element;                          /* bytes: 4, 8 or 16 */
    char uplo;                               /* 'G': all; 'U', 'L': only the elements in that triangle of the
                                                whole matrix */
    int64_t row0, col0;                      /* position of the rectangle's first element in the whole
                                                matrix */
    enum gpb_store_hint target;
    bool adds;                               /* beta != 0: to = from + beta * to instead of to = from;
                                                PREFETCHED */
    bool hermitian;                          /* of a triangle: the diagonal's imaginary parts are not read and
                                                become 0, and beta is real */
    bool mirrors;                            /* all of the rectangle is copied, and the triangle is what is
                                                read: the other elements are its mirror images, conjugated if
                                                Hermitian. `from` is where the first element is or would be.
                                                Not if it adds */
    enum gpb_type type;                      /* of the elements, if it adds, mirrors or is Hermitian */
    gpb_scalar beta;
} gpb_copy2d_job;

/* `from` and `to` must not overlap, and need no alignment. The gaps between columns are neither read nor
   written. */
void gpb_copy2d(const gpb_copy2d_job *rectangle);

#endif
