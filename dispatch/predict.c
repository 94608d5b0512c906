/* SPDX-License-Identifier: MIT */
/* The prediction; see predict.h. It walks the same schedule as the run. */
#include "dispatch/predict.h"

#include "dispatch/cost.h"
#include "dispatch/numbers.h"
#include "dispatch/schedule.h"

#define MOST_MOVES 4096          /* that are walked for a prediction: 0.1 ms */

/* The run walks column blocks of C, up one and down the next, and each tile's panels of k likewise; a panel that comes twice in a
   row stays. With k in one panel B therefore moves once, and A once a column block, less the panel at each turn. Of C in host memory only
   the products travel: beta C is added where it lies. */
gpb_traffic gpb_predict_traffic(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    double m = (double)call->m, n = (double)call->n, k = gpb_call_multiplies(call) ? (double)call->k : 0;
    double rows = (double)ceil_div(call->m, plan->panel[GPB_A].extent), cols = (double)ceil_div(call->n, plan->panel[GPB_B].extent);
    bool whole = plan->kc >= call->k;
    double times_a = whole ? cols - (cols - 1) / rows : cols, times_b = whole ? 1 : rows;
    double element = 4 * (double)call->batch, c = element * m * n * (call->x[GPB_C].uplo == 'G' ? 1 : 0.5);
    return (gpb_traffic){ .a = facts->where[GPB_A].place != GPB_PLACE_DEVICE ? element * m * k * times_a : 0,
                          .b = facts->where[GPB_B].place != GPB_PLACE_DEVICE ? element * k * n * times_b : 0,
                          .c_up = facts->where[GPB_C].place == GPB_PLACE_ELSEWHERE && call->beta != 0 ? c : 0,
                          .c_down = facts->where[GPB_C].place != GPB_PLACE_DEVICE ? c : 0 };
}

double gpb_predict_link(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const gpb_traffic t = gpb_predict_traffic(plan, call, facts);
    double up = gpb_cost_link(t.a, facts->where[GPB_A].place, true, facts) + gpb_cost_link(t.b, facts->where[GPB_B].place, true, facts)
                + gpb_cost_link(t.c_up, facts->where[GPB_C].place, true, facts);
    double down = gpb_cost_link(t.c_down, facts->where[GPB_C].place, false, facts);
    double reach = gpb_cost_reach(t.a, facts->where[GPB_A].place) + gpb_cost_reach(t.c_down, facts->where[GPB_C].place);
    return facts->link.call_s + reach + max(up, down);
}

/* One more strip or tile, beyond its share of the kernels' work: splitting, the kernel's first and last blocks, the way through k, the change
   of streams. On an H200 a strip of 256 took 22, 38, 45, 62 us at k = 1024, 2048, 4096, 8192 (`timeline --gpu`, 2026-11-21), strips that
   nothing splits 10 us less. */
static double launch_s(const gpb_plan *plan, double k1)
{
    return (plan->kernel->form == GPB_FORM_SPLIT ? 16e-6 : 6e-6) + 6e-9 * k1;
}

static double strip_bytes(const gpb_move *move, const gpb_plan *plan)
{
    const gpb_region *t = &move->block;
    int64_t size = move->operand == 'a' ? gpb_schedule_strip(t->rows, plan->panel[GPB_A].strip, move->strip)
                                        : gpb_schedule_strip(t->cols, plan->panel[GPB_B].strip, move->strip);
    return 4.0 * (double)size * (double)move->k1 * (double)t->members;
}

/* What a column takes longer that does not follow the one before. The crew: 8192 in 13.3 ms by strips of B alone, 17.9 with strips of A that
   are columns of 1 KiB; the engines, from pinned memory: 14 ns where strips of 2 KiB lie 16 KiB apart, 40 ns where they lie 32 KiB apart
   (H200, 16 cores, 2026-11-21). */
static double columns_s(int64_t rows, int64_t cols, int64_t ld, int64_t members, enum gpb_place place)
{
    const double column_s = place == GPB_PLACE_PINNED ? 30e-9 : place == GPB_PLACE_HOST ? 10e-9 : 0;
    return ld != rows ? column_s * (double)cols * (double)members : 0;
}

/* The move's strip over the link. */
static double strip_s(const gpb_move *move, const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts)
{
    const bool is_a = move->operand == 'a', k_down = is_a ? call->x[GPB_A].trans != 'N' : call->x[GPB_B].trans == 'N';
    const enum gpb_place place = is_a ? facts->where[GPB_A].place : facts->where[GPB_B].place;
    const int64_t size = is_a ? gpb_schedule_strip(move->block.rows, plan->panel[GPB_A].strip, move->strip)
                              : gpb_schedule_strip(move->block.cols, plan->panel[GPB_B].strip, move->strip);
    return gpb_cost_link(strip_bytes(move, plan), place, true, facts)
           + columns_s(k_down ? move->k1 : size, k_down ? size : move->k1, is_a ? call->x[GPB_A].ld : call->x[GPB_B].ld, move->block.members, place);
}

/* A tile on its way home from then on. What the crew copies both ways is together about 1.6 times what it copies one way (H200 and 16 cores,
   2026-11-21: 69 and 44 GB/s), and strips come first: until the last of them is up, the way home has what is left. */
static double home_s(double from, const gpb_region *t, const gpb_call *call, const gpb_facts *facts, double up_end)
{
    const double bytes = 4.0 * (double)t->rows * (double)t->cols * (double)t->members;
    const double alone_s = gpb_cost_link(bytes, facts->where[GPB_C].place, false, facts) + columns_s(t->rows, t->cols, call->x[GPB_C].ld, t->members, facts->where[GPB_C].place);
    const bool shared = facts->where[GPB_C].place == GPB_PLACE_HOST && (facts->where[GPB_A].place == GPB_PLACE_HOST || facts->where[GPB_B].place == GPB_PLACE_HOST);
    const double slow = max(1, facts->link.down_gbs / (0.6 * facts->link.up_gbs));
    if (!shared || from >= up_end) return alone_s;
    const double beside_s = up_end - from;
    return alone_s * slow <= beside_s ? alone_s * slow : beside_s + alone_s - beside_s / slow;
}

static double moves_of(const gpb_call *call, const gpb_plan *plan)
{
    double steps = gpb_call_multiplies(call) ? (double)ceil_div(call->k, plan->kc) : 1;
    return (double)ceil_div(call->batch, plan->group) * (double)ceil_div(call->m, plan->panel[GPB_A].extent) * (double)ceil_div(call->n, plan->panel[GPB_B].extent) * steps
           * ((double)ceil_div(plan->panel[GPB_A].extent, plan->panel[GPB_A].strip) + (double)ceil_div(plan->panel[GPB_B].extent, plan->panel[GPB_B].strip));
}

/* When the link's two directions and the kernels would each have done with what a move asks of them. */
double gpb_predict_run(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts, double kernels_s)
{
    const bool reads = gpb_call_multiplies(call);
    const double floor_s = gpb_predict_link(plan, call, facts), work = (double)call->m * (double)call->n * (double)call->batch
                                                                         * (reads ? (double)call->k : 1);
    if (moves_of(call, plan) > MOST_MOVES) return max(floor_s, kernels_s + facts->link.call_s) * 1.05;
    gpb_schedule_cursor walk = gpb_schedule_begin(call, plan);
    const gpb_traffic traffic = gpb_predict_traffic(plan, call, facts);
    const double up_end = gpb_cost_link(traffic.a, facts->where[GPB_A].place, true, facts) + gpb_cost_link(traffic.b, facts->where[GPB_B].place, true, facts);
    double up = 0, run = 0, down = 0, last_bytes = 0;
    int64_t tiles = 0;
    for (const gpb_move *move; (move = gpb_schedule_next(&walk));) {
        const gpb_region *t = &move->tile;
        if (move->operand) {
            const enum gpb_place place = move->operand == 'a' ? facts->where[GPB_A].place : facts->where[GPB_B].place;
            const double bytes = strip_bytes(move, plan);
            if (up == 0) up = gpb_cost_reach(bytes, place);
            up += strip_s(move, call, plan, facts);
        }
        if (t->rows == 0) continue;
        const double elements = (double)t->rows * (double)t->cols * (double)t->members;
        if (call->beta != 0 && move->first && facts->where[GPB_C].place == GPB_PLACE_ELSEWHERE) up += gpb_cost_link(4 * elements, facts->where[GPB_C].place, true, facts);
        run = max(run, up) + kernels_s * elements * (reads ? (double)move->k1 : 1) / work + (tiles++ ? launch_s(plan, (double)move->k1) : 0);
        if (!move->last) continue;
        last_bytes = 4 * elements;
        down = max(down, run), down += home_s(down, t, call, facts, up_end);
    }
    return facts->link.call_s + max(max(run, up), down) + gpb_cost_reach(last_bytes, facts->where[GPB_C].place);
}
