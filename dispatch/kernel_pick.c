/* SPDX-License-Identifier: MIT */
/* The choice among the rows that can run; see kernel_pick.h. Whoever adds a kernel adds its rows to tuned.def, not code here. */
#include "dispatch/kernel_pick.h"

#include <math.h>
#include <stddef.h>

#include "dispatch/cost.h"

static const struct tuned {
    enum gpb_kernel_row row;
    int arch;
    double share;
} tuned[] = {
#define TUNED(kernel, arch, share) { GPB_KERNEL_##kernel, arch, share },
#include "dispatch/tuned.def"
#undef TUNED
};
static const int tuned_count = sizeof tuned / sizeof *tuned;

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
    bool padded = kernel->form != GPB_FORM_STRIDED && gpb_call_multiplies(call), deep = multiple(call->k, kernel->bk);
    bool whole_a = call->transa == 'N' && deep && multiple(call->m, kernel->bm);
    bool whole_b = call->transb == 'N' && deep && multiple(call->n, kernel->bn);
    bool here_a = facts->a != GPB_PLACE_DEVICE || aligned(call->a, call->a_array, call->lda, call->stride_a, call->batch);
    bool here_b = facts->b != GPB_PLACE_DEVICE || aligned(call->b, call->b_array, call->ldb, call->stride_b, call->batch);
    return (gpb_packing){
        .a = padded && !(whole_a && here_a),
        .b = padded && !(whole_b && here_b),
        .c = kernel->form == GPB_FORM_PADDED_C || (call->uplo != 'G' && facts->c == GPB_PLACE_DEVICE),
    };
}

/* The newest architecture with rows that is not newer than this GPU. */
static int tuned_arch(int arch)
{
    int newest = 0;
    for (int i = 0; i < tuned_count; i++)
        if (tuned[i].arch <= arch && tuned[i].arch > newest) newest = tuned[i].arch;
    return newest;
}

static double share_of(const gpb_kernel *kernel, int arch)
{
    for (int i = 0; i < tuned_count; i++)
        if (tuned[i].arch == arch && &gpb_kernels[tuned[i].row] == kernel) return tuned[i].share;
    return 0.05;                                   /* listed by nobody: slow */
}

static const gpb_kernel *fastest(const gpb_call *call, const gpb_facts *facts, enum gpb_math math, bool strided, double *seconds)
{
    int arch = tuned_arch(facts->arch);
    const gpb_kernel *best = NULL;
    if (!gpb_call_multiplies(call)) strided = true;      /* nothing to load: nothing that padding could speed up */
    for (int i = 0; i < tuned_count; i++) {
        const gpb_kernel *kernel = &gpb_kernels[tuned[i].row];
        if (tuned[i].arch != arch || kernel->math != math || (strided && kernel->form != GPB_FORM_STRIDED)) continue;
        if (!gpb_kernel_table_runs(kernel->image, facts->arch)) continue;
        double predicted = gpb_cost_kernel(kernel, tuned[i].share, call, facts);
        if (!best || predicted < *seconds) best = kernel, *seconds = predicted;
    }
    return best;
}

const gpb_kernel *gpb_kernel_pick(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy, bool strided,
                                  double *seconds)
{
    const gpb_kernel *kernel = policy->kernel ? gpb_kernel_table_find(policy->kernel) : NULL;
    if (kernel && gpb_kernel_table_runs(kernel->image, facts->arch) && (!strided || kernel->form == GPB_FORM_STRIDED)) {
        *seconds = gpb_cost_kernel(kernel, share_of(kernel, tuned_arch(facts->arch)), call, facts);
        return kernel;
    }
    kernel = policy->math == GPB_POLICY_TF32 ? fastest(call, facts, GPB_MATH_TF32, strided, seconds) : NULL;
    return kernel ? kernel : fastest(call, facts, GPB_MATH_FFMA, strided, seconds);
}
