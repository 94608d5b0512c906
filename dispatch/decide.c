/* SPDX-License-Identifier: MIT */
/* The decision; see decide.h. It reads from top to bottom: what forbids the GPU, what demands it, what it
   costs. */
#include "dispatch/decide.h"

#include <math.h>

#include "dispatch/cost.h"
#include "dispatch/kernel_pick.h"
#include "dispatch/numbers.h"
#include "dispatch/panels.h"
#include "dispatch/predict.h"

/* The GPU must be predicted to be this much faster, because predictions err and the host is the safer
   choice. */
#define MARGIN 0.9
/* From this share of a start's price on, the host leaves a core free, and not only when the start begins,
   because its idle thread looks for work for 134 ms (OpenBLAS: 2^28 cycles). Beside 15 computing threads on
   16 cores a start takes 0.2 s and they lose nothing; beside 16 it takes 0.43 s at the cost of one of them,
   for which all others wait (an H200's host). A core less costs 1/16 of 40 ms. */
#define SOON (1 / 3.)
/* A side is not tried if it is predicted to take this many times as long as the other. The host's figure is
   larger because it is harder to predict: 1812 x 103 x 2 took it 30 us where 58 to 98 were predicted, and 80
   to 134 when it had been idle (tests/bench/results/nvidia-h200/evidence/host-threads.md). */
#define HOPELESS_GPU 2
#define HOPELESS_HOST 4
#define WORTH_RESIDUES 0.925     /* of what another kernel's run takes */
#define WORTH_A_TRY_S 5e-4       /* but the host is always tried if it should take no longer than this */

/* A C of this size is in no cache when the program looks at it. src/copy/copy2d.c copies it 1.4 to 1.5 times
   as fast if it need not read lines in order to write them (2 cores of a Sapphire Rapids; at 16 MiB it is
   about even). */
#define PAST_BYTES 0x1p25
/* One core copies this in 20 us; a sleeping worker arrives after 14. */
#define CREW_BYTES 0x1p18
/* The same under contention. There 1024 takes the calling thread alone 2.7 ms, with the crew 0.7; 512 takes
   0.7 either way (H200: evidence/host-threads.md). */
#define CONTENDED_BYTES 0x1p22
/* A chunk of C on its way home is an eighth of C, within these bounds. */
#define MIN_LOAD_BYTES (256 << 10)
#define MAX_LOAD_BYTES (1 << 20)

static gpb_plan on_host(gpb_plan plan, const char *why)
{
    return (gpb_plan){ .why = why, .host_s = plan.host_s, .gpu_s = plan.gpu_s };
}

static bool slower_on_gpu(const gpb_plan *plan) { return plan->gpu_s >= MARGIN * plan->host_s; }

/* The prediction decides. But a side on which this size was never tried may be better than predicted, so it
   is tried unless that looks hopeless. */
static bool is_the_hosts(const gpb_plan *plan, const gpb_facts *facts)
{
    const bool alone = !facts->now.callers && !facts->now.host_callers;
    if (slower_on_gpu(plan))
        return !facts->learnt.try_gpu || !alone || facts->now.start_s > 0
               || plan->gpu_s >= HOPELESS_GPU * plan->host_s;
    return facts->learnt.try_host && alone
           && (plan->host_s < HOPELESS_HOST * plan->gpu_s || plan->host_s < WORTH_A_TRY_S);
}

/* Seconds that the GPU would save without contention; 0: none. */
static double missed_s(const gpb_plan *plan, const gpb_facts *facts)
{
    const double quiet_s = plan->gpu_s / facts->learnt.gpu_ratio * facts->learnt.quiet_ratio;
    const bool missed = facts->learnt.contended && facts->now.start_s == 0 && slower_on_gpu(plan)
                        && quiet_s < MARGIN * plan->host_s;
    return missed ? plan->host_s - quiet_s : 0;
}

static gpb_plan quicker_on_host(gpb_plan plan, const gpb_facts *facts)
{
    const double missed = missed_s(&plan, facts);
    const bool tries = !slower_on_gpu(&plan);
    plan = on_host(plan, tries ? "trying the host, to learn its speed"
                         : missed > 0 ? "faster on the host (other threads hold the cores)"
                         : "faster on the host");
    plan.tries = tries;
    plan.missed_s = missed;
    return plan;
}

/* The kernel, and the seconds it takes. Systems have kernels of their own, of which there is no model: they
   are taken to be as fast as a product of as many operations by a kernel that needs no workspace. */
static gpb_choice pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                       bool no_workspace)
{
    enum { ARCH = 80 };                  /* of the images that have them (images.def) */
    const gpb_policy plain = { .math = GPB_POLICY_IEEE, .splits = 1 };
    if (!gpb_call_solves(call)) return gpb_kernel_pick(call, facts, policy, no_workspace);
    if (facts->gpu.arch < ARCH) return (gpb_choice){ .splits = 1 };
    gpb_choice like = gpb_kernel_pick(call, facts, &plain, true);
    like.seconds /= 2;
    return like;
}

/* Chooses the panels of the fastest kernel that fits. If none does, tries again without workspace
   (`no_workspace`). */
static bool panels_of_fastest(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                              const gpb_policy *policy)
{
    for (int no_workspace = 0; no_workspace < 2; no_workspace++) {
        const gpb_choice best = pick(call, facts, policy, no_workspace);
        plan->kernel = best.kernel;
        plan->fallback = best.fallback;
        plan->splits = best.splits;
        plan->streamk = best.streamk;
        if (!plan->kernel) continue;
        const gpb_predict_kernels kernels
            = gpb_predict_kernels_of(plan->kernel, gpb_call_apart(call) * best.seconds, call, facts);
        if (!gpb_panels_choose(plan, call, facts, &kernels)) continue;
        plan->gpu_s = facts->learnt.gpu_ratio * gpb_predict_run(plan, call, facts, &kernels, INFINITY);
        plan->usual_s = gpb_panels_usual_s(plan, call, facts, &kernels);
        return true;
    }
    return false;
}

/* The same, but a RESIDUES kernel only where it is clearly faster (WORTH_RESIDUES). Where the link takes
   longer than any kernel it is not, and its operands are sampled before the first byte goes up. From pageable
   memory, in ms with int8x15 and dmma_tma (H100, 16 cores, 2026-11-25; predicted ratio): dgemm 4096 8.5, 7.4
   (1.00), of which 0.4 are the sample; dgemm 8192 30, 35 (0.92); dsyrk 8192 24, 19 (0.93). */
static bool make_panels(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts,
                        const gpb_policy *policy)
{
    gpb_plan plain = *plan;
    gpb_facts without = *facts;
    bool on_device = true;
    if (!panels_of_fastest(plan, call, facts, policy)) return false;
    for (int x = 0; x < GPB_OPERANDS; x++) on_device &= gpb_where_is(facts, x, GPB_PLACE_DEVICE);
    if (on_device || policy->kernel || plan->kernel->form != GPB_FORM_RESIDUES) return true;
    without.gpu.no_residues = true;
    if (panels_of_fastest(&plain, call, &without, policy)
        && plan->usual_s > WORTH_RESIDUES * plain.usual_s)
        *plan = plain;
    return true;
}

/* The link's speed, shared among the calls that are on the GPU at once. */
static gpb_facts shared(const gpb_facts *facts)
{
    gpb_facts now = *facts;
    const double share = 1.0 / (1 + facts->now.callers);
    now.link.up_gbs *= share;
    now.link.down_gbs *= share;
    now.link.dma_gbs *= share;
    return now;
}

/* How many share the cores: the calls on the host, and the copying for calls on the GPU, which host calls
   also slow down. With 16 callers of 2048 the GPU got 0.77 of one caller's work done. When each took its turn
   on the GPU to be slower than the host, both sides together got 0.13 done (H200: evidence/callers.md). */
static double sharers_of_host(const gpb_facts *facts)
{
    return (1 + facts->now.host_callers) * (facts->now.callers > 0 ? 2 : 1);
}

/* True if the user asked for another kernel than the plan's. */
static bool is_other(const gpb_plan *plan, const gpb_policy *policy)
{
    return policy->kernel && plan->kernel != gpb_kernel_table_find(policy->kernel, plan->kernel->type);
}

/* True if starting the GPU, or the rest of a start in progress, pays by this call alone. */
static bool worth_waiting(const gpb_plan *plan, const gpb_facts *facts)
{
    return facts->now.start_s + plan->gpu_s < MARGIN * plan->host_s;
}

/* If a start takes longer than expected, a call waits for it until the host could as well have computed. So
   it takes at most twice as long as the better choice would have. */
static double longest_wait(const gpb_plan *plan, bool must)
{
    return must ? GPB_PLAN_MAX_START_S : MARGIN * plan->host_s - plan->gpu_s;
}

/* True if a triangle is to be mirrored that is not in the host's memory. */
static bool mirrors_on_device(const gpb_call *call, const gpb_facts *facts)
{
    const enum gpb_operand x = gpb_call_mirrored(call);
    return gpb_call_multiplies(call) && x != GPB_C && !gpb_place_on_host(facts->where[x].place);
}

/* The plan of the product with all of that matrix, which a kernel makes of the triangle (sm_80 and later, as
   all of kernels/solve). */
static gpb_plan with_mirrored(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy)
{
    const enum gpb_operand x = gpb_call_mirrored(call);
    const int64_t e = (int64_t)gpb_call_element(call);
    const int64_t order = gpb_call_rows(call, x), ld = gpb_plan_mirrored_ld(order, e);
    const gpb_call whole = gpb_call_whole(call, x, (const void *)(uintptr_t)GPB_PLAN_ALIGNED, ld);
    const int64_t bytes = ld * order * e + GPB_PLAN_ALIGNED;
    gpb_facts less = *facts;
    gpb_plan plan = { 0 };
    if (!gpb_where_is(facts, x, GPB_PLACE_DEVICE)) return on_host(plan, "symmetric operand on another GPU");
    if (facts->gpu.arch < 80) return on_host(plan, "no kernel for this GPU");
    less.gpu.bytes -= bytes;
    plan = gpb_decide(&whole, &less, policy);
    plan.bytes_mirrored = plan.gpu ? bytes : 0;
    return plan;
}

/* Kernels compute a triangle of C alone where one product is added to it, or both at once. */
static bool comes_in_turn(const gpb_call *call, const gpb_facts *facts)
{
    bool on_device = gpb_call_apart(call) == 2 && gpb_call_multiplies(call);
    for (int x = 0; x < GPB_OPERANDS; x++) on_device &= gpb_where_is(facts, x, GPB_PLACE_DEVICE);
    return on_device;
}

static gpb_plan in_turn(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy)
{
    const gpb_call first = gpb_call_alone(call), both = gpb_call_joined(call);
    gpb_plan plan = gpb_decide(&first, facts, policy), joined = { 0 };
    plan.in_turn = plan.gpu;
    plan.gpu_s *= 2;
    plan.usual_s *= 2;
    plan.host_s *= 2;
    if (gpb_call_joins(call)) joined = gpb_decide(&both, facts, policy);
    joined.joined = joined.gpu && !is_other(&joined, policy)
                    && (!plan.gpu || policy->kernel || joined.usual_s < plan.usual_s);
    return joined.joined ? joined : plan;
}

static gpb_plan until_started(gpb_plan plan, const gpb_facts *facts)
{
    const double saved = plan.host_s - plan.gpu_s;
    plan = on_host(plan, facts->now.starting ? "starting the GPU"
                   : "too little work so far to start the GPU");
    const double price = gpb_start_price(&facts->now.history, facts->now.start_cost_s),
                 missed_s = facts->now.credit_s + saved;
    plan.waits = true;
    plan.starts = !facts->now.starting && missed_s >= price;
    plan.leaves_core = missed_s >= SOON * price;
    if (plan.starts) plan.why = "starting the GPU";
    return plan;
}

const char gpb_decide_too_small[] = "too small for the GPU";

const char *gpb_decide_forbids(const gpb_call *call, enum gpb_offload_when when, bool c_on_host, bool gpu)
{
    return when == GPB_OFFLOAD_NEVER ? "GPUBLAS_OFFLOAD=never"
         : !gpb_call_multiplies(call) && c_on_host ? "nothing to multiply" : !gpu ? "no GPU" : NULL;
}

double gpb_decide_too_few(const gpb_facts *facts)
{
    const double ratio = facts->learnt.host_ratio > 0.25 ? facts->learnt.host_ratio : 0.25;
    return facts->link.call_s / 4 * facts->host.core_gflops * 1e9 / 2 / ratio;
}

/* The time for pages of managed memory, which come and go as they are used, at the link's speed for pinned
   memory. Where they are now is not known. */
static double managed_s(const gpb_call *call, const gpb_facts *facts)
{
    double elements = 0;
    for (int x = 0; x < GPB_OPERANDS; x++)
        elements += facts->where[x].managed ? gpb_call_elements(call, x) : 0;
    return (double)gpb_call_element(call) * elements / (1e9 * facts->link.dma_gbs);
}

/* Sets how operands travel and are sliced, and whether fallback kernels wait until a block is flagged. */
static void set_transfers(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts)
{
    const double element = (double)gpb_call_element(call), k = (double)call->k, batch = (double)call->batch;
    const double c = element * (double)call->m * (double)call->n;
    const bool one = plan->one_matrix && gpb_call_products(call) == 1;
    const double sides = (double)call->m + (one ? 0 : (double)call->n);
    const double up = element * sides * k * batch;
    bool once = true, staged = gpb_place_on_host(facts->where[GPB_C].place);
    for (int x = 0; x < GPB_OPERANDS; x++) once &= plan->panel[x].buffers == 1;
    for (int x = 0; x < GPB_C; x++)
        staged |= gpb_call_multiplies(call) && gpb_where_is(facts, x, GPB_PLACE_HOST);
    /* Not if C at home has beta C in it already, because then a tile cannot be fetched again. */
    plan->speculative = gpb_kernel_table_guarded(plan->kernel) && gpb_call_multiplies(call) && once
                        && !plan->panel[GPB_C].packs
                        && (!gpb_where_is(facts, GPB_C, GPB_PLACE_ELSEWHERE) || call->beta == 0);
    if (gpb_kernel_table_guarded(plan->kernel))
        plan->slicer = gpb_kernel_table_slicer(call->type, facts->gpu.arch,
                                               gpb_plan_sliced_k(plan->kernel, plan->kc),
                                               gpb_plan_slices(plan->kernel));
    plan->crew = staged && up + c * batch >= (facts->learnt.contended ? CONTENDED_BYTES : CREW_BYTES);
    plan->past_caches = c >= PAST_BYTES;
    plan->load_bytes = (int64_t)clamp(c / 8, MIN_LOAD_BYTES, MAX_LOAD_BYTES);
}

gpb_plan gpb_decide(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy)
{
    gpb_plan plan = { 0 };
    const bool reads = gpb_call_multiplies(call), c_on_host = !gpb_facts_c_on_gpu(facts);
    const bool on_device = !c_on_host || (reads && gpb_facts_on_gpu(facts));
    const bool must = on_device || policy->offload == GPB_OFFLOAD_ALWAYS;

    const char *forbidden = gpb_decide_forbids(call, policy->offload, c_on_host, facts->gpu.arch != 0);
    if (forbidden) return on_host(plan, forbidden);
    if (mirrors_on_device(call, facts)) return with_mirrored(call, facts, policy);
    if (comes_in_turn(call, facts)) return in_turn(call, facts, policy);

    /* Most calls are small. They are rejected by the GPU's fixed cost before any kernel is considered. */
    plan.panel[GPB_A].extent = call->m;
    plan.panel[GPB_B].extent = call->n;
    plan.kc = call->k;
    plan.group = call->batch;
    for (int x = 0; x < GPB_C; x++) plan.panel[x].strip = plan.panel[x].extent;
    plan.one_matrix = gpb_panels_one_matrix(&plan, call, facts);
    plan.mirrors = gpb_panels_mirror(&plan, call, facts);
    plan.host_s = facts->learnt.host_ratio * sharers_of_host(facts) * gpb_cost_host(call, facts);
    const gpb_facts now = shared(facts);
    const double travel_s = gpb_facts_managed(facts) ? managed_s(call, &now) : 0;
    plan.gpu_s = facts->learnt.gpu_ratio * gpb_predict_link(&plan, call, &now) + travel_s;
    if (!must && facts->link.call_s >= MARGIN * plan.host_s) return on_host(plan, gpb_decide_too_small);
    if (!must && is_the_hosts(&plan, facts) && missed_s(&plan, facts) == 0)
        return quicker_on_host(plan, facts);

    if (!make_panels(&plan, call, &now, policy))
        return on_host(plan, plan.kernel ? "too little device memory" : "no kernel for this GPU");
    plan.gpu_s += travel_s;
    if (!must && is_the_hosts(&plan, facts)) return quicker_on_host(plan, facts);
    if (!must && facts->now.start_s > 0 && !worth_waiting(&plan, facts)) return until_started(plan, facts);

    plan.gpu = true;
    plan.streamk = plan.streamk && plan.bytes_parts > 0;
    set_transfers(&plan, call, facts);
    plan.wait_s = facts->now.start_s > 0 ? longest_wait(&plan, must) : 0;
    plan.tries = !must && slower_on_gpu(&plan);
    plan.why = is_other(&plan, policy) ? "GPUBLAS_KERNEL cannot compute this call; another kernel does"
             : plan.tries ? "trying the GPU, to learn its speed"
             : on_device ? "operand on the device" : must ? "GPUBLAS_OFFLOAD=always" : "faster on the GPU";
    return plan;
}
