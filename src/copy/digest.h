/* SPDX-License-Identifier: MIT */
/* The host's side of digests (kernels/digest.h): the key of the process, and digests of columns, which the
   crew takes. */
#ifndef GPB_COPY_DIGEST_H
#define GPB_COPY_DIGEST_H

#include <stdatomic.h>
#include <stddef.h>

#include "kernels/digest.h"

/* Digests of a matrix's columns, added up as they come. All zero: of none. */
typedef struct gpb_digest {
    _Atomic uint64_t value[GPB_DIGEST_PASSES];
} gpb_digest;

/* Columns [first, last) of a matrix, column-major, as the program has it; of any alignment. */
typedef struct gpb_digest_job {
    const char *a;                           /* the matrix's first element */
    int64_t rows, ld, first, last;
    size_t element;                          /* bytes, a multiple of 4 */
    char uplo;                               /* 'G': all of it; 'U', 'L': that triangle with its diagonal */
    gpb_digest *to;
} gpb_digest_job;

/* The key, drawn at the first call. NULL: the system has no random numbers yet. */
const gpb_digest_key *gpb_digest_own_key(void);
/* Adds the digest of the columns, under the process's key, which there must be. */
void gpb_digest_columns(const gpb_digest_job *job);
/* The digest of a whole matrix, of which `count` polynomials are there, for `each` blocks at a time. */
void gpb_digest_join(gpb_digest *to, const uint64_t (*polynomials)[GPB_DIGEST_PASSES], int64_t count,
                     int64_t each);

#endif
