/* SPDX-License-Identifier: MIT */
/* What stays on a lane while work is resident (resident.c): where its matrices, pivots and INFO are in the
   lane's arena, and how far the run is. */
#ifndef GPB_RUN_RESIDENCE_H
#define GPB_RUN_RESIDENCE_H

#include "dispatch/resident.h"
#include "src/gpu/lanes.h"
#include "src/host/lapack.h"
#include "src/run/carry.h"
#include "src/run/kept.h"

/* INFO as it is before anything is wrong, of no pivot being 0. */
enum { GPB_NO_INFO = INT32_MAX };

/* What the device tells of a refined solution. */
typedef struct gpb_refined_words {
    uint64_t norm;                   /* A's infinity-norm, as the bits of a double */
    int32_t overflow;                /* 1: an element is beyond single precision */
    int32_t worse;                   /* the last round that left a residual too large; from 1 on */
} gpb_refined_words;

/* Of getri (inverse.h). */
typedef struct gpb_lu_inverse {
    int32_t *columns;                /* the column of X that column j of the inverse is; then the walk */
    void *work;                      /* of the host's, if it has to go on */
} gpb_lu_inverse;

typedef struct gpb_residence {
    gpb_lane *lane;
    const gpb_resident *work;
    gpb_facts facts;                 /* of its products: all on the device */
    gpb_policy policy;
    size_t element;                  /* bytes of one */
    CUdeviceptr a, b, ipiv, moves, width, info, arrivals, slots;
    CUdeviceptr given, residual, narrow, words;      /* of a refined X: B, R, the narrow A and X, and
                                                        gpb_refined_words */
    struct gpb_residence *wide;      /* NULL, or the residence whose system this is in single precision; its
                                        columns come up, and are copied up to `narrowed` */
    int64_t narrowed;
    bool there;                      /* A and B have come up already */
    CUdeviceptr beside;              /* a block of L (getri) */
    int64_t ld;                      /* of A and B in the arena */
    /* What the launches take: A and B in the arena, or where the program has them on the device. Then A has
       not come to the arena, and B only to be as it was after a failure. */
    CUdeviceptr of_a, of_b;          /* of_b of TRMM by levels: where its result goes */
    int64_t lda, ldb;
    bool a_stays, b_stays;
    uint32_t arrived;                /* the counter's value once all that is queued has run */
    gpb_carry up, down;
    int wanted;                      /* pieces that come up for what is launched now; 0: all */
    bool by_need;                    /* what the first launches need comes up first, or is there */
    bool kept;                       /* the factors are those that the lane has kept, if the check says so */
    gpb_kept_check check;
    bool others;                     /* it does not: all is done anew */
    bool releases;                   /* Cholesky: columns go home as soon as they are final */
    int32_t found;                   /* INFO of the device or GPB_NO_INFO, once it is fetched */
    bool fetched;
    bool on_host;                    /* what is computed goes to ordinary host memory */
    gpb_lu_inverse inverse;
    bool no_clusters;                /* none of that size fits: a part of a GPU, or others hold its memory */
    int32_t *panel_width;            /* of the panel that begins at a column; 0: none does */
    CUresult result;                 /* the first failure; nothing is queued after it */
    const char *why;                 /* of a failure that is no error of the driver's */
} gpb_residence;

/* Tensor copies can read it where the program has it; bytes of a column. */
static inline bool gpb_residence_can_stay(enum gpb_place place, const void *at, int64_t bytes)
{
    return place == GPB_PLACE_DEVICE && (uintptr_t)at % 16 == 0 && bytes % 16 == 0;
}

static inline void gpb_residence_in_arena(gpb_residence *r)
{
    r->of_a = r->a;
    r->of_b = r->b;
    r->lda = r->ldb = r->ld;
}

/* Cuts the arena: the products' workspace, the matrices, the pivots. NULL, or why there is no room. */
const char *gpb_residence_provide(gpb_residence *r);

/* The same where the factors are that the lane has kept: B and the pivots lie before them. False: there is no
   room for that, or no factors any more. */
bool gpb_residence_provide_before_kept(gpb_residence *r);

/* INFO and the counter become what the first launches expect, and the slots of panels are empty: what a call
   before has left there would look like this one's. */
CUresult gpb_residence_begin(gpb_residence *r);

/* Bytes to and from the arena, behind all that is queued; the thread waits for them. */
CUresult gpb_residence_send(gpb_residence *r, const void *from, CUdeviceptr to, int64_t bytes);
CUresult gpb_residence_fetch(gpb_residence *r, CUdeviceptr from, void *to, int64_t bytes);

/* The pivots of a factorisation, from 1, become the caller's. */
void gpb_residence_put_pivots(const gpb_factor *f, const int32_t *pivots);

/* The column of X (dispatch/inverse.h) that each column of the inverse is. False: the caller's pivots are of
   no factorisation. */
bool gpb_residence_columns(const gpb_factor *f, int32_t *columns);

/* Sends the caller's pivots of factors that are there already; r->why if they are of no factorisation. */
void gpb_residence_send_pivots(gpb_residence *r);

#endif
