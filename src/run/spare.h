/* SPDX-License-Identifier: MIT */
/* A copy of a matrix in ordinary memory, which the crew makes while the GPU computes. If the GPU fails while
   results take the matrix's place, the host begins again with it. */
#ifndef GPB_SPARE_H
#define GPB_SPARE_H

#include "src/copy/crew.h"
#include "src/run/carry.h"

typedef struct gpb_spare {
    gpb_carry_matrix of;
    char *copy;                  /* all of the matrix's rows and columns, without gaps; NULL: there is none */
    gpb_crew_queue *queue;       /* NULL: complete */
    int64_t posted;              /* columns */
} gpb_spare;

/* False: out of memory. */
bool gpb_spare_begin(gpb_spare *spare, const gpb_carry_matrix *of);
/* True: it is complete. Does not wait, but may copy a piece itself. */
bool gpb_spare_go_on(gpb_spare *spare);
/* The matrix is as it was when the copy was made. The copy's memory is nobody's then. */
void gpb_spare_restore(const gpb_spare *spare);
void gpb_spare_end(gpb_spare *spare);

#endif
