/* SPDX-License-Identifier: MIT */
/* LAPACK's parts (host/lapack.h) as launches into the lane's stream. They need no waiting between them, so
   the thread only queues. Their operands are addresses in the arena; INFO and pivots stay on the device.
   After a failure, which is in r->result or r->why, nothing more is queued. */
#ifndef GPB_RUN_RESIDENT_PARTS_H
#define GPB_RUN_RESIDENT_PARTS_H

#include "src/run/residence.h"

/* The parts of a factorisation or solve; `where` is the gpb_residence. */
gpb_lapack_parts gpb_resident_parts(gpb_residence *r);

/* A TRSM or TRMM. where: the gpb_residence. */
void gpb_resident_triangular(void *where, const gpb_triangular *t);

/* Divides the identity by a triangle of one launch, from the right. B's elements that are 0 whatever the
   triangle has stay so, and multiply nothing. */
void gpb_resident_invert(gpb_residence *r, const gpb_triangular *t);

/* A TRMM of which the B of `was` stays as it is, and t's need not be there. */
void gpb_resident_multiply_levels(gpb_residence *r, const gpb_triangular *t, const gpb_triangular *was);

/* A matrix from one place of the arena to another. columns: 0, or an int32_t for each column, the number of
   the one that it is. */
void gpb_resident_copy(gpb_residence *r, CUdeviceptr from, CUdeviceptr to, int64_t rows, int64_t cols,
                       CUdeviceptr columns);

/* What is queued from here on has the columns of the block at `at`. */
void gpb_resident_await(gpb_residence *r, const void *at, int64_t cols);

/* A part of the identity: element (i, j) is 1 if i = j + below. */
void gpb_resident_identity(gpb_residence *r, void *at, int64_t rows, int64_t cols, int64_t below);

/* Of the narrow residence of a refined X (residence.h), a kernel of the wide one's type, and a matrix or its
   columns from `shift` on, of which one triangle is read, in single precision. */
void gpb_resident_launch_wide(gpb_residence *narrow, enum gpb_pass pass, int64_t blocks, void *args);
void gpb_resident_narrow_from(gpb_residence *narrow, CUdeviceptr from, CUdeviceptr to, int64_t shift,
                              int64_t cols, char uplo);

/* Columns before that one go home, if no minor before it is wrong. */
void gpb_resident_release(gpb_residence *r, int64_t columns);

#endif
