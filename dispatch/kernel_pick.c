/* SPDX-License-Identifier: MIT */
/* Chooses among the rows that can run; see kernel_pick.h. To add a kernel, add its rows to tuned.def and no
   code here. */
#include "dispatch/kernel_pick.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "dispatch/cost.h"
#include "dispatch/learn.h"
#include "dispatch/numbers.h"
#include "dispatch/packing.h"
#include "kernels/sliced.h"

/* With a smaller k, slices are not accurate enough: the fallback or FMAs would compute all of C. */
#define MIN_SLICED_K 64
/* The same where k is cut: each part of a row needs 64 elements that count, and half of them may be zeros. */
#define MIN_SLICED_PART 128
/* k of a part times the tile's shorter side. A chain of FMAs has 1/64 of that (thin16, thin32). */
#define LONG_CHAINS 45000
#define LONG_CHAINS_COST 1.05         /* see weighed() */
#define MAX_PARTS_BYTES 0x1p28  /* bytes of partial sums: more would take longer to add up than is gained */

static const gpb_tuned tuned[] = {
#define GPU(...)
#define FALLBACK(...)
#define TUNED(p, kernel, ...) GPB_TUNED(GPB_KERNEL_##p##_##kernel, __VA_ARGS__),
#include "dispatch/tuned.def"
#undef TUNED
};
enum { TUNED_COUNT = sizeof tuned / sizeof *tuned };  /* in the order of generations, as fit.py writes it */

static const enum gpb_kernel_row fallbacks[] = {
#define TUNED(...)
#undef FALLBACK
#define FALLBACK(p, kernel) GPB_KERNEL_##p##_##kernel,
#include "dispatch/tuned.def"
#undef GPU
#undef TUNED
#undef FALLBACK
};

/* The figures of a kernel on this generation. A kernel without a row counts as slow. */
static const gpb_tuned *tuned_for(const gpb_kernel *kernel, int arch)
{
    static const gpb_tuned slow = GPB_TUNED(GPB_KERNELS, 0, 1, 0.05, 0.05, 1, 0, 3, 0.5, 0.5, 1, 1, 1, 1);
    for (int i = 0; i < TUNED_COUNT; i++)
        if (tuned[i].arch == arch && &gpb_kernels[tuned[i].row] == kernel) return &tuned[i];
    return &slow;
}

/* True if each launch of this kernel may cut its k. Of SYR2K only those of strips do (panels.c). */
static bool can_cut(const gpb_kernel *kernel, const gpb_call *call)
{
    return (kernel->form == GPB_FORM_STRIDED || kernel->form == GPB_FORM_PADDED
            || kernel->form == GPB_FORM_MAPPED)
           && gpb_call_multiplies(call) && gpb_call_apart(call) == 1;
}

/* Rounds a number of parts to three significant bits, as tried in tests/bench/fit.c. */
static int rounded(double parts)
{
    int x = parts < 512 ? (int)parts : 512, last = 1;
    while (x >= 8 * last) last *= 2;
    return x / last * last;
}

/* Long chains of FMAs are less accurate than cuBLAS where C has few columns, because cuBLAS cuts k there. (An
   H200, 16384 x 16 x 16384 of U(0,1): 3.6 u in two parts; 1.2 in eight, which take 313 us and not 322; cuBLAS
   1.6. With few rows cuBLAS has 14.) So shorter chains are worth some time. This weighs only in the choice of
   the number of parts. */
static bool has_chains(const gpb_kernel *kernel) { return gpb_kernel_table_can(kernel, GPB_CAP_LONG_CHAINS); }

static double weighed(const gpb_kernel_cost *cost, const gpb_call *call, int splits, double seconds)
{
    const int side = min(cost->kernel->bm, cost->kernel->bn);
    const bool is_long = has_chains(cost->kernel) && call->k * side > (int64_t)splits * LONG_CHAINS;
    return is_long ? seconds * LONG_CHAINS_COST : seconds;
}

static void keep(gpb_choice *best, const gpb_kernel *kernel, int splits, double seconds)
{
    if (best->kernel && seconds >= best->seconds) return;
    *best = (gpb_choice){ .kernel = kernel, .splits = splits, .seconds = seconds };
}

/* A number of parts, the seconds it takes, and the weight that decides. */
typedef struct parts_choice { int splits; double seconds, weight; } parts_choice;

static parts_choice parts_of(const gpb_kernel_cost *cost, const gpb_call *call, int splits)
{
    const double seconds = gpb_cost_seconds(cost, splits);
    return (parts_choice){ splits, seconds, weighed(cost, call, splits, seconds) };
}

/* Tries as many parts as make half as many blocks as there are multiprocessors, then as many, twice, four
   times and eight times as many, until that gets slower. For kernels with long chains it also tries as many
   parts as fill one, two and four rounds of all places. thin16 and thin32 are 14 % faster that way than with
   two blocks for each multiprocessor, which the model cannot tell apart. */
static parts_choice best_parts(const gpb_kernel_cost *cost, const gpb_call *call, parts_choice whole,
                               double most)
{
    parts_choice best = whole;
    double fill = 0.5 / (cost->tiles * cost->per_sm), last = INFINITY;
    for (int x = 0, before = 1; x < 5; x++, fill *= 2) {
        const int splits = rounded(fill < most ? fill : most);
        if (splits <= before) continue;
        const parts_choice now = parts_of(cost, call, splits);
        if (now.weight < best.weight) best = now;
        if (now.seconds > last) break;
        before = splits;
        last = now.seconds;
    }
    for (int rounds = 1; has_chains(cost->kernel) && rounds <= 4; rounds *= 2) {
        const double splits = rounds * cost->places / cost->tiles;
        if (splits < 2 || splits > most) continue;
        const parts_choice now = parts_of(cost, call, rounded(splits));
        if (now.weight < best.weight) best = now;
    }
    return best;
}

/* Considers one kernel with k whole and, if its tiles are few, with k cut. */
static void consider(gpb_choice *best, const gpb_kernel_cost *cost, const gpb_call *call, bool no_workspace)
{
    const gpb_kernel *kernel = cost->kernel;
    parts_choice chosen = parts_of(cost, call, 1);
    /* the least k-tiles of a part, though the last may have fewer */
    const int deep = kernel->math == GPB_MATH_FP16X3 ? MIN_SLICED_PART / kernel->bk : 2;
    double most = cost->k_tiles / deep;
    double bytes = (double)gpb_call_element(call) * gpb_call_elements(call, GPB_C);
    const double limit = best->kernel && best->seconds < chosen.weight ? best->seconds : chosen.weight;
    const bool few = cost->tiles * cost->per_sm <= 4;
    if (most * bytes > MAX_PARTS_BYTES) most = MAX_PARTS_BYTES / bytes;
    if (!no_workspace && few && most >= 2 && gpb_cost_min_cut(cost) < limit && can_cut(kernel, call))
        chosen = best_parts(cost, call, chosen, most);
    keep(best, kernel, chosen.splits, chosen.seconds);
}

/* The arithmetic that the call may use, as bits 1 << GPB_MATH_x. */
static unsigned allowed(const gpb_policy *policy)
{
    const unsigned as_accurate = 1u << GPB_MATH_FMA | 1u << GPB_MATH_FP16X3 | 1u << GPB_MATH_INT8X15;
    switch (policy->math) {
    case GPB_POLICY_IEEE: return 1u << GPB_MATH_FMA;
    case GPB_POLICY_TF32: return as_accurate | 1u << GPB_MATH_TF32;
    default: return as_accurate;
    }
}

/* A MAPPED or RESIDUES kernel where it can compute the call, and a MAPPED one needs no packing that would
   keep operands from coming in strips. Any other kernel. */
static bool suits(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    if (kernel->form != GPB_FORM_MAPPED) return gpb_packing_can(kernel, call, facts);
    bool on_device = true;
    for (int x = 0; x < GPB_OPERANDS; x++) on_device &= gpb_where_is(facts, x, GPB_PLACE_DEVICE);
    return gpb_packing_can(kernel, call, facts)
           && (on_device || !gpb_packing_hinders(kernel, call, facts));
}

/* shares: Stream-K is allowed. math, forms: bits 1 << GPB_MATH_x, 1 << GPB_FORM_x. The most promising kernel
   is considered first, so that most others need no closer look. */
static gpb_choice fastest(const gpb_call *call, const gpb_facts *facts, unsigned math, unsigned forms,
                          bool no_workspace, bool shares)
{
    const gpb_generation *gpu = gpb_generation_of(facts->gpu.arch);
    gpb_case on = gpb_cost_case(call, facts, gpu);
    bool runs[GPB_IMAGES];
    double least[TUNED_COUNT];
    int first = 0, end = 0, promising = -1;
    gpb_choice best = { .splits = 1 };
    on.streamk = shares;
    const int shared = gpb_kernel_table_shared(facts->gpu.arch);
    for (int i = 0; i < GPB_IMAGES; i++) runs[i] = gpb_kernel_table_runs((enum gpb_image)i, facts->gpu.arch);
    while (first < TUNED_COUNT && tuned[first].arch != gpu->arch) first++;
    for (end = first; end < TUNED_COUNT && tuned[end].arch == gpu->arch; end++) {
        const gpb_kernel *kernel = &gpb_kernels[tuned[end].row];
        const bool may = kernel->type == call->type && (math >> kernel->math & 1)
                         && (forms >> kernel->form & 1) && runs[kernel->image] && kernel->smem <= shared
                         && suits(kernel, call, facts);
        least[end] = may ? gpb_cost_min(kernel, &tuned[end], &on) : INFINITY;
        if (may && (promising < 0 || least[end] < least[promising])) promising = end;
    }
    for (int i = first - 1; i < end && promising >= 0; i++) {
        const int row = i < first ? promising : i;
        if (least[row] == INFINITY || (best.kernel && least[row] >= best.seconds)) continue;
        const gpb_kernel_cost cost = gpb_cost_kernel(&gpb_kernels[tuned[row].row], &tuned[row], &on);
        consider(&best, &cost, call, no_workspace);
    }
    return best;
}

/* The kernel for what a guarded kernel of that type leaves. */
static const gpb_kernel *fallback(enum gpb_type type, int arch)
{
    const enum gpb_kernel_row *row = fallbacks;
    /* one of them runs: test_plan.c */
    while (gpb_kernels[*row].type != type || !gpb_kernel_table_serves(&gpb_kernels[*row], arch)) row++;
    return &gpb_kernels[*row];
}

static gpb_kernel_cost cost_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                               bool shares)
{
    const gpb_generation *gpu = gpb_generation_of(facts->gpu.arch);
    gpb_case on = gpb_cost_case(call, facts, gpu);
    on.streamk = shares;
    return gpb_cost_kernel(kernel, tuned_for(kernel, gpu->arch), &on);
}

gpb_kernel_cost gpb_kernel_pick_cost(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    return cost_of(kernel, call, facts, false);
}

static gpb_choice forced(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts, bool shares)
{
    const gpb_kernel_cost cost = cost_of(kernel, call, facts, shares);
    return (gpb_choice){ .kernel = kernel, .splits = 1, .seconds = gpb_cost_seconds(&cost, 1) };
}

/* True if launches whose k is not cut may use Stream-K. GPUBLAS_SPLITS=1 means k whole, literally. */
static bool may_share(const gpb_policy *policy, bool no_workspace)
{
    return !no_workspace && policy->splits == 0;
}

gpb_choice gpb_kernel_pick_anew(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                                bool no_workspace)
{
    const gpb_kernel *kernel = policy->kernel ? gpb_kernel_table_find(policy->kernel, call->type) : NULL;
    const unsigned strided = 1u << GPB_FORM_STRIDED, sliced = 1u << GPB_FORM_SLICED,
        fp16x3 = 1u << GPB_MATH_FP16X3;
    const int64_t k = gpb_call_multiplies(call) ? call->k : 0;
    const bool shares = may_share(policy, no_workspace);
    gpb_choice best;
    if (kernel && gpb_kernel_table_serves(kernel, facts->gpu.arch) && gpb_packing_can(kernel, call, facts)
        && (!no_workspace || kernel->form == GPB_FORM_STRIDED)) {
        best = forced(kernel, call, facts, shares);
    } else {
        /* With nothing to load, no other form is faster. */
        unsigned math = allowed(policy), forms = no_workspace || k == 0 ? strided : ~0u;
        if (gpb_sliced_k(gpb_type_is_complex(call->type), k) < MIN_SLICED_K) {
            math &= ~fp16x3;
            forms &= ~sliced;
        }
        best = fastest(call, facts, math, forms, no_workspace, shares);
    }
    if (!best.kernel) return best;
    if (policy->splits > 0 && !no_workspace) best.splits = can_cut(best.kernel, call) ? policy->splits : 1;
    best.streamk = shares && best.splits == 1;
    if (gpb_kernel_table_guarded(best.kernel)) best.fallback = fallback(call->type, facts->gpu.arch);
    /* Rounded as in the memo below, so that a plan does not depend on earlier calls. */
    best.seconds = (float)best.seconds;
    return best;
}

/* ---- the memo of earlier choices: programs ask for a few sizes again and again, and a choice takes 0.6 to
   1.6 us of calls that take 10 */

enum { REMEMBERED = 256 };
/* `choice` is one word, and `check` is the question's hash exclusive-or that word. Two words that were not
   written together do not match. */
static struct { _Atomic uint64_t check, choice; } remembered[REMEMBERED];

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

/* A hash of all that the choice depends on. It has 64 bits, so two questions of a process will hardly share
   one. */
static uint64_t hash_of(const gpb_call *g, const gpb_facts *facts, const gpb_policy *policy,
                        bool no_workspace)
{
    const gpb_case on = gpb_cost_case(g, facts, gpb_generation_of(facts->gpu.arch));
    uint64_t flags = gpb_call_multiplies(g) | (uint64_t)no_workspace << 1;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        const uint64_t lies = on.misaligned[x] | (uint64_t)gpb_where_is(facts, x, GPB_PLACE_DEVICE) << 1
                              | (uint64_t)(x != GPB_C && gpb_packing_aligned(g, x)) << 2
                              | (uint64_t)(x != GPB_C && gpb_packing_mapped(g, facts, x)) << 3;
        flags |= lies << (2 + 4 * x);
    }
    /* Of C there are only bits 10 and 11. */
    flags |= (uint64_t)gpb_call_one_matrix(g) << 13 | (uint64_t)g->joined << 12;
    flags |= (uint64_t)facts->gpu.no_residues << 14 | (uint64_t)facts->gpu.no_maps << 15;
    flags |= (uint64_t)policy->math << 16 | (uint64_t)facts->gpu.queued << 23;
    flags |= (uint64_t)facts->gpu.arch << 24 | (uint64_t)facts->gpu.sms << 40;
    const gpb_kernel *kernel = policy->kernel ? gpb_kernel_table_find(policy->kernel, g->type) : NULL;
    const uint64_t row = kernel ? (uint64_t)(kernel - gpb_kernels + 1) : 0;
    const uint64_t hash = mix(mix(gpb_learn_hash(g), flags), (uint64_t)facts->gpu.bytes);
    return mix(hash, row << 32 | (uint32_t)policy->splits);
}

/* Row, parts and seconds in one word; 0 if they do not fit. */
static uint64_t packed(const gpb_choice *choice)
{
    const float seconds = (float)choice->seconds;
    uint32_t low;
    if (!choice->kernel || choice->splits >= 1 << 24) return 0;
    memcpy(&low, &seconds, sizeof low);
    return (uint64_t)(choice->kernel - gpb_kernels + 1) << 56 | (uint64_t)choice->splits << 32 | low;
}

static gpb_choice unpacked(uint64_t word, int arch, bool shares)
{
    const uint32_t low = (uint32_t)word;
    float seconds;
    memcpy(&seconds, &low, sizeof low);
    const gpb_kernel *kernel = &gpb_kernels[(word >> 56) - 1];
    const int splits = (int)(word >> 32 & 0xffffff);
    return (gpb_choice){ kernel, gpb_kernel_table_guarded(kernel) ? fallback(kernel->type, arch) : NULL,
                         splits, shares && splits == 1, seconds };
}

gpb_choice gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy,
                           bool no_workspace)
{
    const uint64_t hash = hash_of(call, facts, policy, no_workspace);
    const size_t place = hash % REMEMBERED;
    const uint64_t word = atomic_load_explicit(&remembered[place].choice, memory_order_relaxed);
    if (word && (atomic_load_explicit(&remembered[place].check, memory_order_relaxed) ^ word) == hash)
        return unpacked(word, facts->gpu.arch, may_share(policy, no_workspace));
    const gpb_choice choice = gpb_kernel_pick_anew(call, facts, policy, no_workspace);
    const uint64_t now = packed(&choice);
    if (now) {
        atomic_store_explicit(&remembered[place].choice, now, memory_order_relaxed);
        atomic_store_explicit(&remembered[place].check, hash ^ now, memory_order_relaxed);
    }
    return choice;
}
