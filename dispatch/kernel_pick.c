/* SPDX-License-Identifier: MIT */
/* The choice among the rows that can run; see kernel_pick.h. Whoever adds a kernel adds its rows to tuned.def, not code here. */
#include "dispatch/kernel_pick.h"

#include <math.h>
#include <stddef.h>

#include "dispatch/cost.h"

#define LEAST_SPLIT_K 64              /* gpb_ssplit marks rows with less: all of C would be the stand-in's */
#define MOST_PARTS_BYTES 0x1p28       /* of partial sums: more would be slower to add up than any gain */

static const gpb_tuned tuned[] = {
#define GPU(...)
#define STAND_IN(...)
#define TUNED(kernel, ...) GPB_TUNED(GPB_KERNEL_##kernel, __VA_ARGS__),
#include "dispatch/tuned.def"
#undef TUNED
};
enum { TUNED_COUNT = sizeof tuned / sizeof *tuned };      /* in the order of generations: fit.py writes it */

static const enum gpb_kernel_row stand_ins[] = {
#define TUNED(...)
#undef STAND_IN
#define STAND_IN(kernel) GPB_KERNEL_##kernel,
#include "dispatch/tuned.def"
#undef GPU
#undef TUNED
#undef STAND_IN
};

static bool multiple(int64_t size, int tile)      /* tiles are powers of two: test_kernel_table.c sees to it */
{
    return (size & (tile - 1)) == 0;
}

/* An operand that PADDED kernels can read where it lies on the device: stored as op(X), aligned to 256 bytes at every panel and member. */
static bool aligned(const void *base, const void *const *array, int64_t ld, int64_t stride, int64_t batch)
{
    return !array && (uintptr_t)base % 256 == 0 && multiple(ld, 64) && (batch == 1 || multiple(stride, 64));
}

gpb_packing gpb_kernel_packing(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    bool reads = gpb_call_multiplies(call), split = reads && kernel->form == GPB_FORM_SPLIT;
    bool padded = reads && (kernel->form == GPB_FORM_PADDED || kernel->form == GPB_FORM_PADDED_C), deep = multiple(call->k, kernel->bk);
    bool whole_a = call->transa == 'N' && deep && multiple(call->m, kernel->bm);
    bool whole_b = call->transb == 'N' && deep && multiple(call->n, kernel->bn);
    bool here_a = facts->a != GPB_PLACE_DEVICE || aligned(call->a, call->a_array, call->lda, call->stride_a, call->batch);
    bool here_b = facts->b != GPB_PLACE_DEVICE || aligned(call->b, call->b_array, call->ldb, call->stride_b, call->batch);
    return (gpb_packing){
        .a = split || (padded && !(whole_a && here_a)),
        .b = split || (padded && !(whole_b && here_b)),
        .c = kernel->form == GPB_FORM_PADDED_C || (call->uplo != 'G' && facts->c == GPB_PLACE_DEVICE),
    };
}

/* What is known of a kernel here; a kernel that nobody listed is slow. */
static gpb_tuned tuned_for(const gpb_kernel *kernel, int arch)
{
    for (int i = 0; i < TUNED_COUNT; i++)
        if (tuned[i].arch == arch && &gpb_kernels[tuned[i].row] == kernel) return tuned[i];
    return (gpb_tuned)GPB_TUNED(GPB_KERNELS, arch, 1, 0.05, 0.05, 1, 0, 3, 0.5, 0.5, 1, 1, 1, 1);
}

/* Whether each launch of this kernel may cut its k: partial sums are of the whole of C. */
static bool can_cut(const gpb_kernel *kernel, const gpb_call *call)
{
    return (kernel->form == GPB_FORM_STRIDED || kernel->form == GPB_FORM_PADDED) && call->uplo == 'G' && gpb_call_multiplies(call);
}

/* Numbers of parts that are tried in tests/bench/fit.c: of three significant bits. */
static int rounded(double parts)
{
    int x = parts < 512 ? (int)parts : 512, last = 1;
    while (x >= 8 * last) last *= 2;
    return x / last * last;
}

static void keep(gpb_choice *best, const gpb_kernel *kernel, int splits, double seconds)
{
    if (best->kernel && seconds >= best->seconds) return;
    *best = (gpb_choice){ .kernel = kernel, .splits = splits, .seconds = seconds };
}

/* One kernel with k whole; and, where its tiles are few, in as many parts as make half as many blocks as there are multiprocessors, as
   many, twice, four times, eight times, until that gets slower. */
static void consider(gpb_choice *best, const gpb_kernel_cost *cost, const gpb_call *call, bool lean)
{
    const gpb_kernel *kernel = cost->kernel;
    keep(best, kernel, 1, gpb_cost_seconds(cost, 1));
    double most = cost->slices / 2, bytes = 4 * (double)call->m * (double)call->n * (double)call->batch;
    double fill = 0.5 / (cost->tiles * cost->per_sm);
    if (lean || fill < 1.0 / 8 || most < 2 || gpb_cost_least_cut(cost) >= best->seconds || !can_cut(kernel, call)) return;
    if (most * bytes > MOST_PARTS_BYTES) most = MOST_PARTS_BYTES / bytes;
    double last = INFINITY;
    for (int x = 0, before = 1; x < 5; x++, fill *= 2) {
        int splits = rounded(fill < most ? fill : most);
        if (splits <= before) continue;
        double seconds = gpb_cost_seconds(cost, splits);
        keep(best, kernel, splits, seconds);
        if (seconds > last) return;
        before = splits, last = seconds;
    }
}

/* Bits 1 << GPB_MATH_x: what a call may be computed with. */
static unsigned allowed(const gpb_policy *policy)
{
    switch (policy->math) {
    case GPB_POLICY_IEEE: return 1u << GPB_MATH_FFMA;
    case GPB_POLICY_TF32: return 1u << GPB_MATH_FFMA | 1u << GPB_MATH_FP16X3 | 1u << GPB_MATH_TF32;
    default: return 1u << GPB_MATH_FFMA | 1u << GPB_MATH_FP16X3;
    }
}

/* shares: k may be shared out; math, forms: bits 1 << GPB_MATH_x, 1 << GPB_FORM_x. What promises most is looked at first, so that most others
   need no closer look. */
static gpb_choice fastest(const gpb_call *call, const gpb_facts *facts, unsigned math, unsigned forms, bool lean, bool shares)
{
    const gpb_generation *gpu = gpb_cost_generation(facts->arch);
    gpb_case on = gpb_cost_case(call, facts, gpu);
    bool runs[GPB_IMAGES];
    double least[TUNED_COUNT];
    int first = 0, end = 0, promising = -1;
    gpb_choice best = { .splits = 1 };
    on.shares = shares;
    for (int i = 0; i < GPB_IMAGES; i++) runs[i] = gpb_kernel_table_runs((enum gpb_image)i, facts->arch);
    while (first < TUNED_COUNT && tuned[first].arch != gpu->arch) first++;
    for (end = first; end < TUNED_COUNT && tuned[end].arch == gpu->arch; end++) {
        const gpb_kernel *kernel = &gpb_kernels[tuned[end].row];
        const bool may = (math >> kernel->math & 1) && (forms >> kernel->form & 1) && runs[kernel->image];
        least[end] = may ? gpb_cost_least(kernel, &tuned[end], &on) : INFINITY;
        if (may && (promising < 0 || least[end] < least[promising])) promising = end;
    }
    for (int i = first - 1; i < end && promising >= 0; i++) {
        const int row = i < first ? promising : i;
        if (least[row] == INFINITY || (best.kernel && least[row] >= best.seconds)) continue;
        const gpb_kernel_cost cost = gpb_cost_kernel(&gpb_kernels[tuned[row].row], &tuned[row], &on);
        consider(&best, &cost, call, lean);
    }
    return best;
}

/* Computes what a SPLIT kernel leaves. */
static const gpb_kernel *stand_in(int arch)
{
    int i = 0;
    while (!gpb_kernel_table_runs(gpb_kernels[stand_ins[i]].image, arch)) i++;      /* one does: test_plan.c */
    return &gpb_kernels[stand_ins[i]];
}

static gpb_choice forced(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts, bool shares)
{
    const gpb_tuned known = tuned_for(kernel, gpb_cost_generation(facts->arch)->arch);
    gpb_case on = gpb_cost_case(call, facts, gpb_cost_generation(facts->arch));
    on.shares = shares;
    const gpb_kernel_cost cost = gpb_cost_kernel(kernel, &known, &on);
    return (gpb_choice){ .kernel = kernel, .splits = 1, .seconds = gpb_cost_seconds(&cost, 1) };
}

gpb_choice gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool lean)
{
    const gpb_kernel *kernel = policy->kernel ? gpb_kernel_table_find(policy->kernel) : NULL;
    const unsigned all = ~0u, strided = 1u << GPB_FORM_STRIDED, split = 1u << GPB_FORM_SPLIT;
    const bool shares = !lean && policy->splits == 0;      /* GPUBLAS_SPLITS=1: k whole, to the letter */
    gpb_choice best;
    if (kernel && gpb_kernel_table_runs(kernel->image, facts->arch) && (!lean || kernel->form == GPB_FORM_STRIDED)) {
        best = forced(kernel, call, facts, shares);
    } else {
        /* Nothing to load: nothing that another form could speed up. */
        unsigned forms = lean || !gpb_call_multiplies(call) ? strided : call->k < LEAST_SPLIT_K ? all & ~split : all;
        best = fastest(call, facts, allowed(policy), forms, lean, shares);
    }
    if (!best.kernel) return best;
    if (policy->splits > 0 && !lean) best.splits = can_cut(best.kernel, call) ? policy->splits : 1;
    best.shares = shares && best.splits == 1;
    if (best.kernel->form == GPB_FORM_SPLIT) best.stand_in = stand_in(facts->arch);
    return best;
}
