/* SPDX-License-Identifier: MIT */
/* The prediction; see predict.h. It goes through the same schedule as the run. */
#include "dispatch/predict.h"

#include <math.h>

#include "dispatch/kernel_pick.h"
#include "dispatch/numbers.h"
#include "dispatch/schedule.h"

#define MAX_MOVES 4096          /* most moves that a prediction goes through: 0.1 ms */
#define MIRROR_S 6e-6           /* of a strip of a triangle that is mirrored on the device: not measured */

/* The run goes through the column blocks of C, up one and down the next, and through each tile's panels of k
   likewise. A panel that is used twice in a row stays. So with k in one panel B moves once, and A once for
   each column block, less the panel at each turn. Of a C in host memory only the products travel, because
   beta C is added at home. Both sides of SYR2K have rows of both matrices, and each comes for either side. */
gpb_traffic gpb_predict_traffic(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const double rows = (double)ceil_div(call->m, plan->panel[GPB_A].extent);
    const double cols = (double)ceil_div(call->n, plan->panel[GPB_B].extent);
    const bool whole = plan->kc >= call->k;
    const double alone[] = { whole ? cols - (cols - 1) / rows : cols, whole ? 1 : rows };
    const double both = plan->one_matrix ? alone[GPB_A] : alone[GPB_A] + alone[GPB_B];
    const bool twofold = gpb_call_products(call) == 2;
    const double element = (double)gpb_call_element(call);
    const double c = element * gpb_call_elements(call, GPB_C) * (call->x[GPB_C].uplo == 'G' ? 1 : 0.5);
    gpb_traffic traffic = { .down = gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE) ? 0 : c };
    for (int x = 0; x < GPB_C; x++)
        if (!gpb_where_is(facts, x, GPB_PLACE_DEVICE) && (twofold || !(x == GPB_B && plan->one_matrix)))
            traffic.up[x] = element * gpb_call_elements(call, x) * (twofold ? both : alone[x]);
    if (plan->mirrors) traffic.up[gpb_call_mirrored(call)] /= 2;
    if (gpb_where_is(facts, GPB_C, GPB_PLACE_ELSEWHERE) && call->beta != 0) traffic.up[GPB_C] = c;
    return traffic;
}

double gpb_predict_up(const gpb_traffic *traffic, const gpb_facts *facts)
{
    double seconds = 0;
    for (int x = 0; x < GPB_OPERANDS; x++)
        seconds += gpb_cost_link(traffic->up[x], facts->where[x].place, true, facts);
    return seconds;
}

double gpb_predict_down(const gpb_traffic *traffic, const gpb_facts *facts)
{
    return gpb_cost_link(traffic->down, facts->where[GPB_C].place, false, facts);
}

double gpb_predict_link(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const gpb_traffic t = gpb_predict_traffic(plan, call, facts);
    const double reach = gpb_cost_reach(t.up[GPB_A], facts->where[GPB_A].place)
                         + gpb_cost_reach(t.down, facts->where[GPB_C].place);
    return facts->link.call_s + reach + max(gpb_predict_up(&t, facts), gpb_predict_down(&t, facts));
}

/* The cost of one more strip or tile beyond its share of the kernels' work: slicing, the kernel's first and
   last blocks, the way through k, the change of streams. On an H200 a strip of 256 took 22, 38, 45, 62 us at
   k = 1024, 2048, 4096, 8192 (`timeline --gpu`, 2026-11-21); strips that are not sliced took 10 us less. k1
   is 0 where tile_s counts rounds, because the way through k is in them. */
static double launch_s(const gpb_plan *plan, double k1)
{
    return (gpb_kernel_table_guarded(plan->kernel) ? 16e-6 : 6e-6) + 6e-9 * k1;
}

/* Rows of op(A) or columns of op(B) in the move's strip. */
static int64_t strip_size(const gpb_move *move, const gpb_plan *plan)
{
    return gpb_schedule_strip(move->block.size[move->operand], plan->panel[move->operand].strip, move->strip);
}

/* The extra time of columns that do not follow each other directly. The crew: 8192 took 13.3 ms by strips of
   B alone, 17.9 with strips of A, which are columns of 1 KiB. The copy engines, from pinned memory: 14 ns if
   strips of 2 KiB lie 16 KiB apart, 40 ns if 32 KiB apart (H200, 16 cores, 2026-11-21). */
static double columns_s(int64_t rows, int64_t cols, int64_t ld, int64_t members, enum gpb_place place)
{
    const double column_s = place == GPB_PLACE_PINNED ? 30e-9 : place == GPB_PLACE_HOST ? 10e-9 : 0;
    return ld != rows ? column_s * (double)cols * (double)members : 0;
}

/* True if the move brings a strip of a triangle that a kernel mirrors. */
static bool brings_triangle(const gpb_move *move, const gpb_plan *plan, const gpb_call *call)
{
    return plan->mirrors && move->reads && move->operand == gpb_call_mirrored(call);
}

/* The move's strip of so many bytes over the link. of: the matrix that it is a part of. */
static double strip_s(const gpb_move *move, enum gpb_operand of, int64_t size, double bytes,
                      const gpb_call *call, const gpb_facts *facts)
{
    const enum gpb_place place = facts->where[of].place;
    const bool k_down = gpb_call_k_down(call, move->operand);
    const int64_t rows = k_down ? move->depth : size, cols = k_down ? size : move->depth;
    return gpb_cost_link(bytes, place, true, facts)
           + columns_s(rows, cols, call->x[of].ld, move->block.members, place);
}

/* The same of a triangle: columns from the strip's first row down, or rows from its first column on. */
static double triangle_s(const gpb_move *move, const gpb_plan *plan, int64_t size, double bytes,
                         const gpb_call *call, const gpb_facts *facts)
{
    const enum gpb_place place = facts->where[move->operand].place;
    const gpb_matrix *a = &call->x[move->operand];
    const bool lower = a->uplo == 'L';
    const int64_t left = call->k - move->strip * plan->panel[move->operand].strip;
    const double share = ((double)left - (double)size / 2) / (double)call->k;
    return gpb_cost_link(share * bytes, place, true, facts)
           + columns_s(lower ? left : size, lower ? size : left, a->ld, 1, place);
}

/* What the move brings over the link; *up: when the link is done with it. Of SYR2K a strip of both
   matrices. */
static void bring_s(const gpb_move *move, const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                    double *up)
{
    const int64_t size = strip_size(move, plan);
    const double bytes = (double)gpb_call_element(call) * (double)size * (double)move->depth
                         * (double)move->block.members;
    const enum gpb_operand second = move->operand == GPB_A ? GPB_B : GPB_A;
    if (plan->one_matrix && move->operand != gpb_schedule_leader(call, plan)) return;
    if (*up == 0) *up = gpb_cost_reach(bytes, facts->where[move->operand].place);
    *up += brings_triangle(move, plan, call)
           ? triangle_s(move, plan, size, bytes, call, facts)
           : strip_s(move, move->operand, size, bytes, call, facts);
    if (gpb_call_products(call) == 2) *up += strip_s(move, second, size, bytes, call, facts);
}

/* A tile's way home, beginning at `from`. When the crew copies in both directions, it copies about 1.6 times
   as much in all as in one (H200 and 16 cores, 2026-11-21: 69 and 44 GB/s), and strips come first. So until
   the last strip is up, the way home gets what is left. */
static double home_s(double from, const gpb_region *t, double bytes, const gpb_call *call,
                     const gpb_facts *facts, double up_end)
{
    const enum gpb_place place = facts->where[GPB_C].place;
    const double alone_s = gpb_cost_link(bytes, place, false, facts)
                           + columns_s(t->rows, t->cols, call->x[GPB_C].ld, t->members, place);
    const bool staged = gpb_where_is(facts, GPB_A, GPB_PLACE_HOST)
                        || gpb_where_is(facts, GPB_B, GPB_PLACE_HOST);
    const bool shared = place == GPB_PLACE_HOST && staged;
    const double slow = max(1, facts->link.down_gbs / (0.6 * facts->link.up_gbs));
    if (!shared || from >= up_end) return alone_s;
    const double beside_s = up_end - from;
    return alone_s * slow <= beside_s ? alone_s * slow : beside_s + alone_s - beside_s / slow;
}

static double moves_of(const gpb_call *call, const gpb_plan *plan)
{
    double blocks = (double)ceil_div(call->batch, plan->group), strips = 0;
    for (int x = 0; x < GPB_C; x++) {
        blocks *= (double)ceil_div(gpb_call_extent(call, x), plan->panel[x].extent);
        strips += (double)ceil_div(plan->panel[x].extent, plan->panel[x].strip);
    }
    return blocks * (gpb_call_multiplies(call) ? (double)ceil_div(call->k, plan->kc) : 1) * strips;
}

/* Seconds of the launches of a MAPPED kernel for the tile of C. Its blocks go in rounds of as many as the
   GPU holds, and a strip's tiles may be few. (H200, operands of order 4096 in the host's memory, a round of
   285 us each: DSYMM sixteen of 64 blocks where 132 fit, DSYRK fifteen of 16 to 112, DSYR2K thirty. So the
   kernels took 4.5, 4.3 and 8.5 ms, where full rounds take 2.3, 1.2 and 2.4.) */
static double tile_s(const gpb_kernel_cost *whole, const gpb_move *move, const gpb_plan *plan,
                     const gpb_call *call, double share)
{
    const gpb_region *t = &move->tile;
    const gpb_kernel *kernel = plan->kernel;
    gpb_kernel_cost part = *whole;
    part.tiles = (double)(ceil_div(t->rows, kernel->bm) * ceil_div(t->cols, kernel->bn) * t->members);
    part.k_tiles = (double)ceil_div(move->depth, kernel->bk);
    part.memory_s *= share;
    part.part_s *= share;
    part.other_s = 0;
    return gpb_call_apart(call) * gpb_cost_seconds(&part, plan->splits);
}

gpb_predict_kernels gpb_predict_kernels_of(const gpb_kernel *kernel, double seconds, const gpb_call *call,
                                           const gpb_facts *facts)
{
    gpb_predict_kernels kernels = { .seconds = seconds };
    if (kernel->form == GPB_FORM_MAPPED) kernels.cost = gpb_kernel_pick_cost(kernel, call, facts);
    return kernels;
}

/* Follows the link's two directions and the kernels: for each move, when each is done with it. Launches are
   mostly of equal rectangles, so what one takes holds for the next. */
double gpb_predict_run(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                       const gpb_predict_kernels *kernels, double limit_s)
{
    const bool reads = gpb_call_multiplies(call);
    const bool fetches_c = call->beta != 0 && gpb_where_is(facts, GPB_C, GPB_PLACE_ELSEWHERE);
    const double element = (double)gpb_call_element(call), floor_s = gpb_predict_link(plan, call, facts);
    const double depth = reads ? (double)call->k : 1;
    const double work = (double)call->m * (double)call->n * (double)call->batch * depth;
    if (moves_of(call, plan) > MAX_MOVES) return max(floor_s, kernels->seconds + facts->link.call_s) * 1.05;
    gpb_schedule_cursor cursor = gpb_schedule_begin(call, plan);
    gpb_traffic traffic = gpb_predict_traffic(plan, call, facts);
    traffic.up[GPB_C] = 0;
    const double up_end = gpb_predict_up(&traffic, facts);
    double up = 0, run = 0, down = 0, last_bytes = 0;
    int64_t tiles = 0;
    gpb_region same = { 0 };             /* the last launch's rectangle, depth and seconds */
    int64_t same_depth = 0;
    double same_s = 0;
    const bool rounds = reads && plan->kernel->form == GPB_FORM_MAPPED && moves_of(call, plan) > 2;
    for (const gpb_move *move; (move = gpb_schedule_next(&cursor));) {
        const gpb_region *t = &move->tile;
        if (facts->link.call_s + max(max(run, up), down) >= limit_s) return INFINITY;
        if (move->reads) bring_s(move, plan, call, facts, &up);
        if (brings_triangle(move, plan, call)) run = max(run, up) + MIRROR_S;
        if (t->rows == 0) continue;
        const double elements = (double)t->rows * (double)t->cols * (double)t->members;
        if (fetches_c && move->first)
            up += gpb_cost_link(element * elements, facts->where[GPB_C].place, true, facts);
        const double share = elements * (reads ? (double)move->depth : 1) / work;
        const bool again = t->rows == same.rows && t->cols == same.cols && t->members == same.members
                           && move->depth == same_depth;
        if (rounds && !again) same_s = tile_s(&kernels->cost, move, plan, call, share);
        same = *t;
        same_depth = move->depth;
        run = max(run, up) + (rounds ? same_s : kernels->seconds * share);
        if (tiles++) run += gpb_call_products(call) * launch_s(plan, rounds ? 0 : (double)move->depth);
        if (!move->last) continue;
        last_bytes = element * elements;
        down = max(down, run);
        down += home_s(down, t, last_bytes, call, facts, up_end);
    }
    return facts->link.call_s + max(max(run, up), down)
           + gpb_cost_reach(last_bytes, facts->where[GPB_C].place);
}
