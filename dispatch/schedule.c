/* SPDX-License-Identifier: MIT */
/* The walk; see schedule.h. Blocks go down one column of blocks and up the next, and each block's panels of k likewise, so that a panel
   that is used twice in a row is there already and does not come again. */
#include "dispatch/schedule.h"

#include "dispatch/numbers.h"

/* Wholly outside the triangle that uplo names. */
static bool is_idle(const gpb_call *call, const gpb_region *t)
{
    return (call->x[GPB_C].uplo == 'U' && t->i >= t->j + t->cols) || (call->x[GPB_C].uplo == 'L' && t->j >= t->i + t->rows);
}

gpb_schedule_cursor gpb_schedule_begin(const gpb_call *call, const gpb_plan *plan)
{
    return (gpb_schedule_cursor){ .call = call, .plan = plan, .key = { { -1 }, { -1 } } };
}

/* The block of that number. */
static gpb_region block_of(const gpb_schedule_cursor *w, int64_t number)
{
    const gpb_call *call = w->call;
    const gpb_plan *plan = w->plan;
    const int64_t rows = ceil_div(call->m, plan->panel[GPB_A].extent), cols = ceil_div(call->n, plan->panel[GPB_B].extent);
    int64_t group = number / (rows * cols), col = number / rows % cols, row = number % rows;
    if (col % 2) row = rows - 1 - row;
    gpb_region t = { .member = group * plan->group, .i = row * plan->panel[GPB_A].extent, .j = col * plan->panel[GPB_B].extent };
    t.members = min(plan->group, call->batch - t.member);
    t.rows = min(plan->panel[GPB_A].extent, call->m - t.i);
    t.cols = min(plan->panel[GPB_B].extent, call->n - t.j);
    return t;
}

static int64_t blocks_of(const gpb_schedule_cursor *w)
{
    return ceil_div(w->call->batch, w->plan->group) * ceil_div(w->call->m, w->plan->panel[GPB_A].extent) * ceil_div(w->call->n, w->plan->panel[GPB_B].extent);
}

/* The panel of one operand: the one that is there, or one that is still to come. */
static void turn(gpb_schedule_cursor *w, int x, int64_t at, int64_t strips)
{
    const int64_t key[3] = { w->at.block.member, at, w->at.p };
    const bool same = w->key[x][0] == key[0] && w->key[x][1] == key[1] && w->key[x][2] == key[2];
    w->strips[x] = strips;
    w->there[x] = same ? strips : 0;
    w->at.panel[x] += !same;
    for (int i = 0; i < 3; i++) w->key[x][i] = key[i];
}

/* The next panel of k, of the next block if the last was the block's last. False: there is none. */
static bool enter(gpb_schedule_cursor *w)
{
    const gpb_plan *plan = w->plan;
    const int64_t k = gpb_call_multiplies(w->call) ? w->call->k : 0, steps = k ? ceil_div(k, plan->kc) : 1;
    const int64_t blocks = blocks_of(w);
    if (w->step == 0) {
        while (w->block < blocks && (w->at.block = block_of(w, w->block), is_idle(w->call, &w->at.block))) w->block++;
        if (w->block == blocks) return false;
        w->at.panel[2]++;
    }
    w->at.number = w->block;
    w->at.first = w->step == 0, w->at.last = w->step == steps - 1;
    w->at.p = k ? (w->block % 2 ? steps - 1 - w->step : w->step) * plan->kc : 0;
    w->at.k1 = min(plan->kc, k - w->at.p);
    if (k) {
        turn(w, 0, w->at.block.i, ceil_div(w->at.block.rows, plan->panel[GPB_A].strip));
        turn(w, 1, w->at.block.j, ceil_div(w->at.block.cols, plan->panel[GPB_B].strip));
    }
    w->inside = true;
    if (w->at.last) w->step = 0, w->block++;
    else w->step++;
    return true;
}

/* What the strip unlocks: between it and all strips of the other operand that are there. */
static gpb_region unlocked(const gpb_schedule_cursor *w, int x)
{
    const gpb_plan *plan = w->plan;
    gpb_region t = w->at.block;
    if (x == 0) {
        t.rows = gpb_schedule_strip(t.rows, plan->panel[GPB_A].strip, w->at.strip);
        t.i += w->at.strip * plan->panel[GPB_A].strip;
        t.cols = min(t.cols, w->there[1] * plan->panel[GPB_B].strip);
    } else {
        t.cols = gpb_schedule_strip(t.cols, plan->panel[GPB_B].strip, w->at.strip);
        t.j += w->at.strip * plan->panel[GPB_B].strip;
        t.rows = min(t.rows, w->there[0] * plan->panel[GPB_A].strip);
    }
    if (t.rows == 0 || t.cols == 0 || is_idle(w->call, &t)) return (gpb_region){ 0 };
    return t;
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
        const bool whole_a = w->there[0] == w->strips[0], whole_b = w->there[1] == w->strips[1];
        if (whole_a && whole_b) {
            w->inside = false;
            continue;
        }
        const int x = whole_b || (!whole_a && w->there[0] <= w->there[1]) ? 0 : 1;
        w->at.operand = x ? 'b' : 'a';
        w->at.strip = w->there[x]++;
        w->at.tile = unlocked(w, x);
        return &w->at;
    }
}
