/* SPDX-License-Identifier: MIT */
/* The rule; see packing.h. */
#include "dispatch/packing.h"

static bool multiple(int64_t size, int tile)      /* tiles are powers of two: test_kernel_table.c sees to it */
{
    return (size & (tile - 1)) == 0;
}

bool gpb_packing_aligned(const void *base, const void *const *array, int64_t ld, int64_t stride, int64_t batch)
{
    return !array && (uintptr_t)base % 256 == 0 && multiple(ld, 64) && (batch == 1 || multiple(stride, 64));
}

gpb_packing gpb_packing_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    bool reads = gpb_call_multiplies(call), split = reads && kernel->form == GPB_FORM_SPLIT;
    bool padded = reads && (kernel->form == GPB_FORM_PADDED || kernel->form == GPB_FORM_PADDED_C), deep = multiple(call->k, kernel->bk);
    bool whole_a = call->x[GPB_A].trans == 'N' && deep && multiple(call->m, kernel->bm);
    bool whole_b = call->x[GPB_B].trans == 'N' && deep && multiple(call->n, kernel->bn);
    bool here_a = facts->where[GPB_A].place != GPB_PLACE_DEVICE || gpb_packing_aligned(call->x[GPB_A].base, call->x[GPB_A].array, call->x[GPB_A].ld, call->x[GPB_A].stride, call->batch);
    bool here_b = facts->where[GPB_B].place != GPB_PLACE_DEVICE || gpb_packing_aligned(call->x[GPB_B].base, call->x[GPB_B].array, call->x[GPB_B].ld, call->x[GPB_B].stride, call->batch);
    return (gpb_packing){
        .a = split || (padded && !(whole_a && here_a)),
        .b = split || (padded && !(whole_b && here_b)),
        .c = kernel->form == GPB_FORM_PADDED_C || (call->x[GPB_C].uplo != 'G' && facts->where[GPB_C].place == GPB_PLACE_DEVICE),
    };
}
