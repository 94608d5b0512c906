/* SPDX-License-Identifier: MIT */
/* The order of a run. C is computed block by block (a block is the extents of the plan's panels, for `group`
   members), each from panels of k. The panels of A and B come in strips, alternately. Each strip unlocks the
   part of C between it and the strips of the other operand that are there, except strips outside a triangle
   (host_ideal in tests/bench/host.c gives the best time for this). Three readers go through the same
   schedule: the run, the host when it finishes a failed run, and the cost model. Pure. */
#ifndef GPB_SCHEDULE_H
#define GPB_SCHEDULE_H

#include "dispatch/call.h"
#include "dispatch/plan.h"

/* A rectangle of C: members [member, member + members) of the batch, rows [i, i + rows), columns
   [j, j + cols). The rows are those of op(A), the columns those of op(B): at[GPB_A] is i, size[GPB_B] is
   cols. */
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

/* One step: a strip comes, and what it unlocks is computed. */
typedef struct gpb_move {
    gpb_region block;            /* the block that the panels belong to */
    int64_t number;              /* of the block, from 0; idle blocks count */
    int64_t p, depth;            /* the panel of k: `depth` deep, from p on */
    bool first, last;            /* among the block's panels of k */
    bool reads;                  /* a strip of `operand` (A or B) comes; else nothing is read */
    enum gpb_operand operand;
    int64_t strip;               /* its number in the panel */
    int64_t panel[GPB_OPERANDS]; /* numbers, from 1, of the panels of A and B and of the block of C; odd and
                                    even ones use different buffers */
    gpb_region tile;             /* to be computed now; rows == 0: nothing yet */
} gpb_move;

typedef struct gpb_schedule_cursor {
    const gpb_call *call;
    const gpb_plan *plan;
    int64_t block, step;         /* the next ones */
    bool inside;                 /* in the middle of a panel of k */
    gpb_move at;
    int64_t strips[2], there[2]; /* of A and B: strips in the current panels; strips that have come */
    int64_t key[2][3];           /* of the panel that is there: member, first row or column, p; key[x][0] < 0:
                                    none */
} gpb_schedule_cursor;

gpb_schedule_cursor gpb_schedule_begin(const gpb_call *call, const gpb_plan *plan);
/* The next move; NULL if there is none. */
const gpb_move *gpb_schedule_next(gpb_schedule_cursor *cursor);

/* The operand of A and B that comes first. Of a lower triangle in strips it is B: its strips unlock nothing
   but what lies above the diagonal, and A's then all tiles left of it. Were it A, the block on the diagonal
   would be a launch of its own, as of an upper triangle if it were B. */
static inline enum gpb_operand gpb_schedule_leader(const gpb_call *call, const gpb_plan *plan)
{
    const bool strips = plan->panel[GPB_A].strip < plan->panel[GPB_A].extent;
    return call->x[GPB_C].uplo == 'L' && strips ? GPB_B : GPB_A;
}

/* The width of strip x of a panel that is `size` rows of op(A) or columns of op(B) wide and is cut into
   strips of `strip`. */
static inline int64_t gpb_schedule_strip(int64_t size, int64_t strip, int64_t x)
{
    int64_t left = size - x * strip;
    return left < strip ? left : strip;
}

#endif
