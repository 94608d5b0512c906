/* SPDX-License-Identifier: MIT */
/* The order of a run. C is computed block by block (the extents of the plan's panels, for `group` members),
   each from panels of k; the panels of A and B come in strips, alternately, and each strip unlocks the part
   of C between it and the strips of the other operand that are there (host_ideal in tests/bench/host.c has
   the time that this takes at best). The run, the host that finishes what a failed run left, and the cost
   model walk the same way. Pure. */
#ifndef GPB_SCHEDULE_H
#define GPB_SCHEDULE_H

#include "dispatch/call.h"
#include "dispatch/plan.h"

/* A part of C: members [member, member + members) of the batch, rows [i, i + rows), columns [j, j + cols).
   The rows are those of op(A), the columns those of op(B): at[GPB_A] is i, size[GPB_B] is cols. */
typedef struct gpb_region {
    int64_t member, members;
    union {
        struct { int64_t i, j; };
        int64_t at[2];
    };
    union {
        struct { int64_t rows, cols; };
        int64_t size[2];
    };
} gpb_region;

/* One strip comes, and what it unlocks is computed. */
typedef struct gpb_move {
    gpb_region block;            /* whose panels these are */
    int64_t number;              /* of the block, from 0, idle ones counted */
    int64_t p, depth;            /* the panel of k: so deep from p */
    bool first, last;            /* of the block's panels of k */
    bool reads;                  /* a strip of this operand, A or B, comes; else nothing is read: */
    enum gpb_operand operand;
    int64_t strip;               /* its number in the panel */
    int64_t panel[GPB_OPERANDS]; /* numbers, from 1, of the panels of A and of B, and of the block of C: each
                                    second uses the same buffer */
    gpb_region tile;             /* computed now; rows == 0: nothing yet */
} gpb_move;

typedef struct gpb_schedule_cursor {
    const gpb_call *call;
    const gpb_plan *plan;
    int64_t block, step;         /* next */
    bool inside;                 /* in the middle of a panel of k */
    gpb_move at;
    int64_t strips[2], there[2]; /* of A and B: in the panels at hand; that have come */
    int64_t key[2][3];           /* member, first row or column, p of the panel that is there; key[x][0] < 0:
                                    none */
} gpb_schedule_cursor;

gpb_schedule_cursor gpb_schedule_begin(const gpb_call *call, const gpb_plan *plan);
/* The next move; NULL: that was the last. */
const gpb_move *gpb_schedule_next(gpb_schedule_cursor *walk);

/* Strip x of a panel that is `size` rows of op(A) or columns of op(B) wide, in strips of `strip`: its own
   width. */
static inline int64_t gpb_schedule_strip(int64_t size, int64_t strip, int64_t x)
{
    int64_t left = size - x * strip;
    return left < strip ? left : strip;
}

#endif
