/* SPDX-License-Identifier: MIT */
/* The schedule; see schedule.h. Blocks go down one column of blocks and up the next, and so do each block's
   panels of k. So a panel that is used twice in a row is there already and does not come again. */
#include "dispatch/schedule.h"

#include "dispatch/numbers.h"

/* True if the block is wholly outside the triangle that uplo names. */
static bool is_idle(const gpb_call *call, const gpb_region *t)
{
    const char uplo = call->x[GPB_C].uplo;
    return (uplo == 'U' && t->i >= t->j + t->cols) || (uplo == 'L' && t->j >= t->i + t->rows);
}

gpb_schedule_cursor gpb_schedule_begin(const gpb_call *call, const gpb_plan *plan)
{
    return (gpb_schedule_cursor){ .call = call, .plan = plan, .key = { { -1 }, { -1 } } };
}

/* Number of blocks of C along the rows of op(A) or the columns of op(B). */
static int64_t blocks_along(const gpb_schedule_cursor *w, enum gpb_operand x)
{
    return ceil_div(gpb_call_extent(w->call, x), w->plan->panel[x].extent);
}

static int64_t blocks_of(const gpb_schedule_cursor *w)
{
    return ceil_div(w->call->batch, w->plan->group) * blocks_along(w, GPB_A) * blocks_along(w, GPB_B);
}

/* The block of that number. */
static gpb_region block_of(const gpb_schedule_cursor *w, int64_t number)
{
    const int64_t rows = blocks_along(w, GPB_A), cols = blocks_along(w, GPB_B), col = number / rows % cols;
    const int64_t row = number % rows;
    const int64_t place[2] = { col % 2 ? rows - 1 - row : row, col };
    gpb_region t = { .member = number / (rows * cols) * w->plan->group };
    t.members = min(w->plan->group, w->call->batch - t.member);
    for (int x = 0; x < GPB_C; x++) {
        t.at[x] = place[x] * w->plan->panel[x].extent;
        t.size[x] = min(w->plan->panel[x].extent, gpb_call_extent(w->call, x) - t.at[x]);
    }
    return t;
}

/* Turns to the operand's panel: the one that is there already, or one that is still to come. */
static void turn(gpb_schedule_cursor *w, enum gpb_operand x)
{
    const int64_t key[3] = { w->at.block.member, w->at.block.at[x], w->at.p };
    const bool same = w->key[x][0] == key[0] && w->key[x][1] == key[1] && w->key[x][2] == key[2];
    w->strips[x] = ceil_div(w->at.block.size[x], w->plan->panel[x].strip);
    w->there[x] = same ? w->strips[x] : 0;
    w->at.panel[x] += !same;
    for (int i = 0; i < 3; i++) w->key[x][i] = key[i];
}

/* Goes to the next panel of k, in the next block if that was the block's last. False: there is none. */
static bool enter(gpb_schedule_cursor *w)
{
    const gpb_plan *plan = w->plan;
    const int64_t k = gpb_call_depth(w->call), steps = k ? ceil_div(k, plan->kc) : 1;
    const int64_t blocks = blocks_of(w);
    if (w->step == 0) {
        for (; w->block < blocks; w->block++) {
            w->at.block = block_of(w, w->block);
            if (!is_idle(w->call, &w->at.block)) break;
        }
        if (w->block == blocks) return false;
        w->at.panel[GPB_C]++;
    }
    w->at.number = w->block;
    w->at.first = w->step == 0;
    w->at.last = w->step == steps - 1;
    w->at.p = k ? (w->block % 2 ? steps - 1 - w->step : w->step) * plan->kc : 0;
    w->at.depth = min(plan->kc, k - w->at.p);
    for (int x = 0; x < GPB_C && k; x++) turn(w, x);
    w->inside = true;
    if (w->at.last) {
        w->step = 0;
        w->block++;
    } else {
        w->step++;
    }
    return true;
}

/* Leaves out the strips of `other` that lie outside the triangle beside all of the tile. */
static void trim(const gpb_schedule_cursor *w, enum gpb_operand other, gpb_region *t)
{
    const enum gpb_operand x = other == GPB_A ? GPB_B : GPB_A;
    const char uplo = w->call->x[GPB_C].uplo;
    const int64_t strip = w->plan->panel[other].strip, base = w->at.block.at[other];
    if (uplo == 'G') return;
    if ((uplo == 'L') == (other == GPB_A)) {
        /* From the tile's first row or column on. */
        const int64_t skip = max(0, t->at[x] - base) / strip * strip;
        t->at[other] += skip;
        t->size[other] -= skip;
    } else {
        /* Up to its last one. */
        t->size[other] = min(t->size[other], ceil_div(max(0, t->at[x] + t->size[x] - base), strip) * strip);
    }
}

/* The next strip of one operand, and what it unlocks: the part of C between it and all strips of the other
   operand that are there. The tile is made in its place, because a copy of one just made has to wait for its
   stores: predictions took 1.4 times as long. */
static void bring(gpb_schedule_cursor *w, enum gpb_operand x)
{
    const enum gpb_operand other = x == GPB_A ? GPB_B : GPB_A;
    const int64_t strip = w->plan->panel[x].strip, number = w->there[x]++;
    gpb_region *t = &w->at.tile;
    *t = w->at.block;
    t->size[x] = gpb_schedule_strip(t->size[x], strip, number);
    t->at[x] += number * strip;
    t->size[other] = min(t->size[other], w->there[other] * w->plan->panel[other].strip);
    trim(w, other, t);
    w->at.reads = true;
    w->at.operand = x;
    w->at.strip = number;
    if (t->rows <= 0 || t->cols <= 0 || is_idle(w->call, t)) *t = (gpb_region){ 0 };
}

const gpb_move *gpb_schedule_next(gpb_schedule_cursor *w)
{
    for (;;) {
        if (!w->inside && !enter(w)) return NULL;
        if (!gpb_call_multiplies(w->call)) {
            w->inside = false;
            w->at.tile = w->at.block;
            return &w->at;
        }
        const bool whole_a = w->there[GPB_A] == w->strips[GPB_A];
        const bool whole_b = w->there[GPB_B] == w->strips[GPB_B];
        if (whole_a && whole_b) {
            w->inside = false;
            continue;
        }
        const enum gpb_operand leader = gpb_schedule_leader(w->call, w->plan);
        const bool behind = w->there[GPB_A] < w->there[GPB_B] + (leader == GPB_A);
        bring(w, whole_b || (!whole_a && behind) ? GPB_A : GPB_B);
        return &w->at;
    }
}
