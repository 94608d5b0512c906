/* SPDX-License-Identifier: MIT */
/* Panels; see panels.h. All sums saturate, so a call of any size gets an answer, and a call that cannot fit
   is seen not to fit. */
#include "dispatch/panels.h"

#include <math.h>

#include "dispatch/cost.h"
#include "dispatch/numbers.h"
#include "dispatch/packing.h"
#include "dispatch/predict.h"
#include "dispatch/streamk.h"
#include "kernels/sliced.h"

#define SATURATED (INT64_C(1) << 59)     /* ten of these still fit into an int64_t; a multiple of 1024 */
/* Panels are cut at multiples of this, which is a multiple of every tile and makes rows multiples of 1024
   bytes. */
#define GRAIN 256
#define MAX_STRIPS 64                   /* of A and B together */
#define MAX_STEPS 16                    /* panels of k, to overlap copies with kernels */
#define GROUP_BYTES 0x1p24               /* of a batch over the link at a time: 0.3 ms at 50 GB/s */
/* A member's share of the four address tables of a pointer-array batch: 48 bytes, and 4 x 256 for rounding.
   The rounding is needed only once, but counting it for each member makes a group's bytes proportional to its
   size. */
#define TABLES 1088

static int64_t rounded_up(int64_t size, int64_t multiple)
{
    return size >= SATURATED ? SATURATED : round_up(size, multiple);
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) || result > SATURATED ? SATURATED : result;
}

/* Bytes of `group` panels of such elements, rounded up. */
static int64_t area(int64_t rows, int64_t cols, int64_t group, size_t element)
{
    return rounded_up(product(product(product(rows, cols), (int64_t)element), group), 256);
}

/* Bytes of `group` operands of rows x k after slicing. */
static int64_t sliced_area(const gpb_kernel *kernel, enum gpb_operand x, int64_t rows, int64_t k,
                           int64_t group)
{
    /* gpb_sliced_bytes itself would overflow, far beyond any memory. */
    const bool beyond = area(rows, k, 1, gpb_type_bytes(kernel->type)) >= SATURATED / 16;
    return beyond ? SATURATED : product(gpb_plan_sliced_bytes(kernel, x, rows, k), group);
}

/* Sums of real numbers in a tile of that kernel, NULL: none. */
static int64_t tile_sums(const gpb_kernel *kernel)
{
    return kernel ? (int64_t)kernel->bm * kernel->bn * (gpb_type_is_complex(kernel->type) ? 2 : 1) : 0;
}

/* Sets a panel of that extent, in one strip. */
static void set_extent(gpb_plan *plan, enum gpb_operand x, int64_t extent)
{
    plan->panel[x].extent = plan->panel[x].strip = extent;
}

/* Tiles of that kernel in a block of C. */
static int64_t tiles_of(const gpb_plan *plan, const gpb_kernel *kernel)
{
    return product(ceil_div(plan->panel[GPB_A].extent, kernel->bm),
                   ceil_div(plan->panel[GPB_B].extent, kernel->bn));
}

/* Tiles of the plan's kernel in a launch. */
static int64_t launch_tiles(const gpb_plan *plan)
{
    const gpb_kernel *kernel = plan->kernel;
    const int64_t all = tiles_of(plan, kernel);
    return plan->triangle && all < SATURATED
           ? gpb_triangle_tiles(plan->triangle, plan->panel[GPB_B].extent, kernel->bm, kernel->bn) : all;
}

/* True if some launch of the plan is likely to use Stream-K. Strips unlock less than the whole panel at a
   time. */
static bool will_share(const gpb_plan *plan, const gpb_facts *facts)
{
    const gpb_kernel *kernel = plan->kernel;
    const int64_t tiles = product(launch_tiles(plan), plan->group);
    const gpb_panels *a = &plan->panel[GPB_A], *b = &plan->panel[GPB_B];
    const bool strips = a->strip < a->extent || b->strip < b->extent;
    return plan->streamk && gpb_streamk_fits(kernel, facts->gpu.sms, facts->gpu.bytes)
           && ((strips && gpb_streamk_is_deep(plan->kc))
               || gpb_streamk_choose(kernel, facts->gpu.arch, facts->gpu.sms, tiles, plan->kc).blocks);
}

/* Bytes for the residues of a block of C, and the padding up to a multiple of GPB_PLAN_ALIGNED. */
static int64_t residues_area(const gpb_plan *plan)
{
    const gpb_kernel *kernel = plan->kernel;
    const int64_t tile = (int64_t)kernel->bm * kernel->bn * gpb_plan_slices(kernel);
    return rounded_up(product(product(launch_tiles(plan), tile), plan->group), GPB_PLAN_ALIGNED)
           + GPB_PLAN_ALIGNED;
}

/* The most elements of C in a launch: what a strip unlocks, or all of the block. */
static int64_t launch_elements(const gpb_plan *plan)
{
    const gpb_panels *a = &plan->panel[GPB_A], *b = &plan->panel[GPB_B];
    const int64_t by_b = product(a->extent, b->strip), by_a = product(a->strip, b->extent);
    return a->strip == a->extent || b->strip == b->extent ? min(by_a, by_b) : max(by_a, by_b);
}

/* Bytes for partial sums: of all parts if k is cut; of Stream-K; or of the tiles whose k a SLICED kernel
   cuts, with its counters and the padding up to a multiple of GPB_PLAN_ALIGNED. */
static int64_t parts_area(const gpb_plan *plan, const gpb_facts *facts, size_t element)
{
    const gpb_kernel *kernel = plan->kernel;
    if (plan->splits > 1)
        return area(launch_elements(plan), product(plan->group, plan->splits), 1, element);
    if (kernel->form == GPB_FORM_RESIDUES) return residues_area(plan);
    if (kernel->form != GPB_FORM_SLICED)
        return will_share(plan, facts) ? gpb_streamk_bytes(kernel, facts->gpu.sms) : 0;
    const int64_t clusters = (facts->gpu.sms + 1) / GPB_SLICED_CLUSTER;
    const int64_t tiles = gpb_sliced_partial_bytes(clusters, max(tile_sums(kernel),
                                                                 tile_sums(plan->wide)));
    const int64_t counters = GPB_SLICED_COUNTERS * (int64_t)sizeof(uint32_t);
    return rounded_up(tiles + counters, GPB_PLAN_ALIGNED) + GPB_PLAN_ALIGNED;
}

/* Bytes of an operand's panels in strips; see gpb_plan_strip_bytes. */
static int64_t strips_area(const gpb_plan *plan, enum gpb_operand x, size_t element)
{
    const gpb_panels *p = &plan->panel[x];
    return product(ceil_div(p->extent, p->strip),
                   area(min(p->extent, p->strip), plan->kc, plan->group, element));
}

/* The same of an operand that is mirrored there. */
static int64_t mirrored_area(const gpb_plan *plan, size_t element)
{
    return area(gpb_plan_mirrored_ld(plan->kc, (int64_t)element), plan->kc, 1, element);
}

/* The strips after slicing. */
static int64_t strips_sliced(const gpb_plan *plan, enum gpb_operand x)
{
    const gpb_panels *p = &plan->panel[x];
    return product(ceil_div(p->extent, p->strip),
                   sliced_area(plan->kernel, x, min(p->extent, p->strip), plan->kc, plan->group));
}

/* Two buffers if more than one panel comes: one arrives while the other is in use. */
static void count_buffers(gpb_plan *plan, const gpb_call *call)
{
    const bool groups = call->batch > plan->group, steps = gpb_call_multiplies(call) && call->k > plan->kc;
    bool any = false;
    for (int x = 0; x < GPB_C; x++) {
        const bool several = gpb_call_extent(call, x) > plan->panel[x].extent;
        plan->panel[x].buffers = several || groups || steps ? 2 : 1;
        any |= several;
    }
    plan->panel[GPB_C].buffers = any || groups ? 2 : 1;
}

/* Sets the bytes of A or B, of SYR2K for both matrices. */
static void measure_read(gpb_plan *plan, enum gpb_operand x, bool comes, const gpb_call *call)
{
    const gpb_kernel *kernel = plan->kernel;
    const size_t element = gpb_call_element(call);
    const int64_t products = gpb_call_products(call);
    const bool sliced = gpb_kernel_table_guarded(kernel);
    gpb_panels *p = &plan->panel[x];
    const int64_t extent = rounded_up(p->extent, gpb_kernel_table_edge(kernel, x));
    const int64_t depth = rounded_up(plan->kc, kernel->bk);
    const bool mirrors = plan->mirrors && gpb_call_mirrors(call, x);
    const int64_t panel = mirrors ? mirrored_area(plan, element) : strips_area(plan, x, element);
    p->bytes = comes ? product(rounded_up(panel, sliced ? GPB_PLAN_ALIGNED : 1), p->buffers * products) : 0;
    p->bytes_packed = !p->packs ? 0
                      : product(sliced ? strips_sliced(plan, x) : area(extent, depth, plan->group, element),
                                products);
    p->bytes_wide = plan->wide
                    ? sliced_area(plan->wide, x, min(p->extent, p->strip), plan->kc, plan->group) : 0;
}

/* Sets the bytes of C, whose blocks are A's extent by B's. */
static void measure_written(gpb_plan *plan, bool comes, size_t element)
{
    const gpb_kernel *kernel = plan->kernel;
    const int64_t grain = gpb_kernel_table_guarded(kernel) ? GPB_PLAN_ALIGNED : 1;
    const int64_t m = plan->panel[GPB_A].extent, n = plan->panel[GPB_B].extent;
    gpb_panels *p = &plan->panel[GPB_C];
    p->bytes = comes ? product(rounded_up(area(m, n, plan->group, element), grain), p->buffers) : 0;
    const int64_t padded = area(rounded_up(m, kernel->bm), rounded_up(n, kernel->bn), plan->group, element);
    p->bytes_packed = p->packs ? rounded_up(padded, grain) : 0;
}

/* True if the operand has panels in the arena. Those of SYR2K have rows of both matrices. */
static bool comes_to(const gpb_call *call, const gpb_facts *facts, enum gpb_operand x)
{
    const enum gpb_operand other = x == GPB_A ? GPB_B : GPB_A;
    return !gpb_where_is(facts, x, GPB_PLACE_DEVICE)
           || (gpb_call_products(call) == 2 && !gpb_where_is(facts, other, GPB_PLACE_DEVICE));
}

bool gpb_panels_one_matrix(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const gpb_panels *a = &plan->panel[GPB_A], *b = &plan->panel[GPB_B];
    const bool same = gpb_call_one_matrix(call) || gpb_call_products(call) == 2;
    return same && gpb_call_multiplies(call) && comes_to(call, facts, GPB_A) && a->extent == call->m
           && b->extent == call->n && a->strip == b->strip;
}

bool gpb_panels_mirror(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    enum { ARCH = 80, LEAST = 1 << 20 };     /* of kernels/solve; bytes, half of which take 10 us */
    const enum gpb_operand x = gpb_call_mirrored(call);
    return x != GPB_C && gpb_call_multiplies(call) && gpb_place_on_host(facts->where[x].place)
           && facts->gpu.arch >= ARCH && plan->panel[x].extent == call->k && plan->kc == call->k
           && product(product(call->k, call->k), (int64_t)gpb_call_element(call)) >= LEAST;
}

/* True if C is one block, of which each operand comes at once. */
static bool is_whole(const gpb_plan *plan, const gpb_call *call)
{
    const gpb_panels *a = &plan->panel[GPB_A], *b = &plan->panel[GPB_B];
    return a->strip == call->m && b->strip == call->n;
}

/* A triangle of C is computed in place if C is one block. The diagonal may cross smaller ones anywhere, so
   they take the way through a workspace. */
static void keep_triangle(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const bool whole = is_whole(plan, call);
    const int triangle = gpb_packing_triangle(plan->kernel, call, facts);
    plan->triangle = whole ? triangle : 0;
    plan->panel[GPB_C].packs = gpb_packing_of(plan->kernel, call, facts, GPB_C) || (triangle && !whole);
}

/* Sets the bytes for the plan's panels. Returns their sum, with the address tables. */
static int64_t measure(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const size_t element = gpb_call_element(call);
    const bool reads = gpb_call_multiplies(call);
    plan->one_matrix = gpb_panels_one_matrix(plan, call, facts);
    plan->mirrors = gpb_panels_mirror(plan, call, facts);
    plan->one_packed = reads && is_whole(plan, call) && gpb_packing_one(plan->kernel, call, facts);
    keep_triangle(plan, call, facts);
    count_buffers(plan, call);
    for (int x = 0; x < GPB_C; x++) {
        const bool comes = reads && comes_to(call, facts, x);
        measure_read(plan, x, comes && !(x == GPB_B && plan->one_matrix), call);
    }
    if (plan->one_packed) plan->panel[GPB_B].bytes_packed = 0;
    measure_written(plan, !gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE), element);
    plan->bytes_parts = reads ? parts_area(plan, facts, element) : 0;
    return gpb_plan_bytes(plan) + (gpb_call_arrays(call) ? product(plan->group, TABLES) : 0);
}

static bool fits(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const gpb_kernel *smallest = plan->fallback ? plan->fallback : plan->kernel;
    /* a grid has at most 2^31 - 1 blocks */
    return measure(plan, call, facts) <= facts->gpu.bytes && tiles_of(plan, smallest) <= INT32_MAX;
}

/* The next smaller panel to try: GRAIN times a power of two; 0 after the last. */
static int64_t smaller(int64_t panel)
{
    int64_t next = panel > GRAIN ? GRAIN : 0;
    while (next && next < panel - next) next *= 2;
    return next;
}

/* The same number of panels, but of equal size. */
static int64_t even(int64_t size, int64_t panel)
{
    int64_t count = ceil_div(size, panel);
    return count == 1 ? size : min(panel, rounded_up(ceil_div(size, count), GRAIN));
}

/* The widest column block that fits beside that height and kc, or 0. */
static int64_t widest(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    int64_t good = 0, bad = ceil_div(call->n, GRAIN) + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        set_extent(plan, GPB_B, min(product(middle, GRAIN), call->n));
        if (fits(plan, call, facts)) good = middle;
        else bad = middle;
    }
    return min(product(good, GRAIN), call->n);
}

/* The seconds by which panels that do not all fit are compared: the busiest of link and kernels, a tenth of
   the others because they get in each other's way, and the launches for each block and panel of k. */
static double worth(const gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                    const gpb_predict_kernels *kernels)
{
    const gpb_traffic t = gpb_predict_traffic(plan, call, facts);
    const double up = gpb_predict_up(&t, facts), down = gpb_predict_down(&t, facts), busiest = max(up, down);
    const double steps = gpb_call_multiplies(call) ? (double)ceil_div(call->k, plan->kc) : 1;
    double launches = (double)ceil_div(call->batch, plan->group) * steps;
    for (int x = 0; x < GPB_C; x++)
        launches *= (double)ceil_div(gpb_call_extent(call, x), plan->panel[x].extent);
    return max(busiest, kernels->seconds) + 0.1 * (up + down + kernels->seconds)
           + launches * facts->link.call_s;
}

/* Tries all depths and heights by halves, each with the widest column block. These are a few hundred
   candidates at most, for a call that takes seconds. */
static bool cut(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                const gpb_predict_kernels *kernels)
{
    gpb_plan best = { 0 };
    double best_s = INFINITY;
    int64_t highest = plan->panel[GPB_A].extent;
    for (int64_t kc = call->k; kc == call->k || kc > 0; kc = smaller(kc)) {
        for (int64_t mc = highest; mc > 0; mc = smaller(mc)) {
            plan->kc = even(call->k, kc);
            set_extent(plan, GPB_A, even(call->m, mc));
            const int64_t nc = widest(plan, call, facts);
            if (nc == 0) continue;
            set_extent(plan, GPB_B, even(call->n, nc));
            if (!fits(plan, call, facts)) set_extent(plan, GPB_B, nc);    /* fewer tiles may use Stream-K */
            double seconds = worth(plan, call, facts, kernels);
            if (seconds < best_s) {
                best = *plan;
                best_s = seconds;
            }
        }
        if (!gpb_call_multiplies(call)) break;
    }
    if (best_s == INFINITY) return false;
    *plan = best;
    measure(plan, call, facts);
    return true;
}

/* The SLICED kernel for blocks that FP16 slices cannot represent, or NULL if it does not run here. */
static const gpb_kernel *wide_beside(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    if (kernel->math != GPB_MATH_FP16X3 || kernel->form != GPB_FORM_SLICED || !gpb_call_multiplies(call))
        return NULL;
    for (int i = 0; i < gpb_kernel_count; i++)
        if (gpb_kernels[i].type == kernel->type && gpb_kernels[i].math == GPB_MATH_BF16X6
            && gpb_kernels[i].form == GPB_FORM_SLICED
            && gpb_kernel_table_runs(gpb_kernels[i].image, facts->gpu.arch))
            return &gpb_kernels[i];
    return NULL;
}

/* The wide kernel is seldom needed. So it may have an eighth of the memory, and only where the call is one
   panel. */
static bool fits_with_wide(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    plan->wide = wide_beside(plan->kernel, call, facts);
    if (plan->wide && fits(plan, call, facts)
        && plan->panel[GPB_A].bytes_wide + plan->panel[GPB_B].bytes_wide <= facts->gpu.bytes / 8)
        return true;
    plan->wide = NULL;
    return fits(plan, call, facts);
}

/* A panel that gpb_spack packs is one strip. */
static bool takes_no_strips(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    return kernel->form == GPB_FORM_PADDED || kernel->form == GPB_FORM_PADDED_C
           || gpb_packing_hinders(kernel, call, facts);
}

/* Cuts k where a strip unlocks fewer tiles than there are multiprocessors: into as many parts as give each of
   them a block in the largest launch, or twice as many, because other launches are smaller. Each part keeps
   some k (512), so that adding the parts up stays small beside it. `next` has strips, and gets the number of
   parts that is predicted to be best, perhaps none. Returns the seconds of that, exactly if they are less
   than `limit_s`. */
static double fill(gpb_plan *next, const gpb_call *call, const gpb_facts *facts,
                   const gpb_predict_kernels *kernels, double limit_s)
{
    enum { MOST = 16, LEAST_K = 512 };
    const gpb_kernel *kernel = next->kernel;
    double best_s = gpb_predict_run(next, call, facts, kernels, limit_s);
    if (!next->streamk || next->splits > 1 || kernel->form != GPB_FORM_MAPPED) return best_s;
    const double tiles = (double)launch_elements(next) / ((double)kernel->bm * kernel->bn);
    int splits = 2;
    while (splits < MOST && 2 * splits * tiles <= facts->gpu.sms) splits *= 2;
    for (int i = 0; i < 2 && splits * LEAST_K <= call->k; i++, splits *= 2) {
        gpb_plan cut = *next;
        cut.splits = splits;
        cut.streamk = false;
        if (!fits(&cut, call, facts)) break;
        const double seconds = gpb_predict_run(&cut, call, facts, kernels, limit_s);
        if (seconds >= best_s) continue;
        *next = cut;
        best_s = seconds;
    }
    return best_s;
}

/* Chooses strips of both operands, or of B with the whole of A, or panels of k, so that copying, kernels and
   the way home overlap: whatever is predicted to end first. Strips of both let C go home from the beginning;
   strips of B alone need fewer launches. A C in place is one tile with panels of k, so that after a failure
   or a flagged block there is just one tile to repair. */
static void overlap(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                    const gpb_predict_kernels *kernels)
{
    const bool padded = takes_no_strips(plan->kernel, call, facts);
    const bool c_in_place = gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE);
    const bool on_device = gpb_where_is(facts, GPB_A, GPB_PLACE_DEVICE)
                           && gpb_where_is(facts, GPB_B, GPB_PLACE_DEVICE) && c_in_place;
    const int64_t mc = plan->panel[GPB_A].extent, nc = plan->panel[GPB_B].extent;
    if (on_device || padded || plan->panel[GPB_C].packs || call->batch > 1 || !gpb_call_multiplies(call)
        || plan->kc < call->k)
        return;
    gpb_plan best = *plan;
    double best_s = gpb_predict_run(plan, call, facts, kernels, INFINITY);
    const int64_t longest = c_in_place ? 0 : max(mc, nc);
    for (int64_t strip = GRAIN; strip < longest; strip *= 2)
        for (int whole_a = 0; whole_a < 2; whole_a++) {
            gpb_plan next = *plan;
            next.panel[GPB_A].strip = whole_a ? mc : min(strip, mc);
            next.panel[GPB_B].strip = min(strip, nc);
            const int64_t strips = ceil_div(mc, next.panel[GPB_A].strip)
                                   + ceil_div(nc, next.panel[GPB_B].strip);
            if (strips > MAX_STRIPS || !fits(&next, call, facts)) continue;
            const double seconds = fill(&next, call, facts, kernels, best_s);
            if (seconds < best_s) {
                best = next;
                best_s = seconds;
            }
        }
    for (int64_t steps = 2; steps <= MAX_STEPS && call->k >= steps * GRAIN && mc == call->m
         && nc == call->n; steps *= 2) {
        gpb_plan next = *plan;
        next.kc = min(call->k, rounded_up(ceil_div(call->k, steps), GRAIN));
        next.splits = plan->splits > steps ? (int)(plan->splits / steps) : 1;
        if (!fits(&next, call, facts)) continue;
        double seconds = gpb_predict_run(&next, call, facts, kernels, best_s);
        if (seconds < best_s) {
            best = next;
            best_s = seconds;
        }
    }
    *plan = best;
}

/* Even a batch that fits as a whole goes in groups, so that one arrives while another is computed. */
static void in_groups(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const gpb_traffic t = gpb_predict_traffic(plan, call, facts);
    const double bytes = t.up[GPB_A] + t.up[GPB_B] + t.down;
    int64_t groups = min(call->batch, bytes > GROUP_BYTES ? (int64_t)(bytes / GROUP_BYTES) : 1);
    gpb_plan next = *plan;
    next.group = ceil_div(call->batch, groups);
    if (groups > 1 && fits(&next, call, facts)) *plan = next;
}

/* The facts that the shape of a run depends on, with the link of an H200. They include nothing that was
   measured and no other calls, because the shape determines the order of sums, and the same call must give
   the same bits. */
static gpb_facts usual(const gpb_facts *facts)
{
    gpb_facts same = *facts;
    same.link.up_gbs = same.link.down_gbs = same.link.dma_gbs = 50;
    same.link.call_s = 12e-6;
    return same;
}

double gpb_panels_usual_s(const gpb_plan *plan, const gpb_call *call, const gpb_facts *measured,
                          const gpb_predict_kernels *kernels)
{
    const gpb_facts facts = usual(measured);
    return gpb_predict_run(plan, call, &facts, kernels, INFINITY);
}

bool gpb_panels_choose(gpb_plan *plan, const gpb_call *call, const gpb_facts *measured,
                       const gpb_predict_kernels *kernels)
{
    const gpb_facts always = usual(measured), *facts = &always;
    const int64_t longest = GPB_PLAN_LONGEST_COLUMN / (int64_t)gpb_call_element(call);
    for (int x = 0; x < GPB_OPERANDS; x++)
        plan->panel[x].packs = gpb_packing_of(plan->kernel, call, facts, x);
    const bool c_in_place = gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE);
    if (gpb_call_solves(call) && !c_in_place && call->m > longest) return false;
    set_extent(plan, GPB_A, c_in_place ? call->m : even(call->m, min(call->m, longest)));
    set_extent(plan, GPB_B, call->n);
    plan->kc = call->k;
    plan->group = call->batch;
    if (fits_with_wide(plan, call, facts)) {
        if (!gpb_call_solves(call)) overlap(plan, call, facts, kernels);
        in_groups(plan, call, facts);
        return true;
    }
    plan->group = 1;
    /* for any number of members */
    int64_t member = measure(plan, call, facts), once = plan->splits > 1 ? 0 : plan->bytes_parts;
    member -= once;
    if (plan->streamk && gpb_streamk_fits(plan->kernel, facts->gpu.sms, facts->gpu.bytes))
        once = gpb_streamk_bytes(plan->kernel, facts->gpu.sms);
    if (member > 0 && fits(plan, call, facts)) {
        plan->group = min(call->batch, max((facts->gpu.bytes - once) / member, 1));
        return fits(plan, call, facts);
    }
    if (gpb_call_solves(call)) return false;      /* a system is not cut */
    gpb_facts less = *facts;      /* strips need a little more */
    less.gpu.bytes -= less.gpu.bytes / 32;
    gpb_plan again = *plan;
    /* What fits into less may not fit into more: Stream-K gets memory by what there is (gpb_streamk_fits). */
    if (!cut(plan, call, &less, kernels) || !fits(plan, call, facts)) {
        *plan = again;
        if (!cut(plan, call, facts, kernels)) return false;
    }
    overlap(plan, call, facts, kernels);
    measure(plan, call, facts);
    return true;
}
