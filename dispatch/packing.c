/* SPDX-License-Identifier: MIT */
/* The rule; see packing.h. */
#include "dispatch/packing.h"

#define ALIGNED 256               /* bytes */

static bool multiple(int64_t size, int tile)      /* tiles are powers of two, as test_kernel_table.c checks */
{
    return (size & (tile - 1)) == 0;
}

bool gpb_packing_aligned(const gpb_call *call, enum gpb_operand which)
{
    const gpb_matrix *x = &call->x[which];
    const int64_t element = (int64_t)gpb_call_element(call);
    return !x->array && (uintptr_t)x->base % ALIGNED == 0 && multiple(x->ld * element, ALIGNED)
           && (call->batch == 1 || multiple(x->stride * element, ALIGNED));
}

/* True if a PADDED kernel can read A or B as it is: stored as op(X), in whole tiles. */
static bool is_padded(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                      enum gpb_operand x)
{
    const bool whole = multiple(gpb_call_extent(call, x), gpb_kernel_table_edge(kernel, x))
                       && multiple(call->k, kernel->bk);
    const bool lies_right = !gpb_where_is(facts, x, GPB_PLACE_DEVICE) || gpb_packing_aligned(call, x);
    return whole && !gpb_matrix_transposed(&call->x[x]) && lies_right;
}

bool gpb_packing_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                    enum gpb_operand x)
{
    if (x == GPB_C)
        return kernel->form == GPB_FORM_PADDED_C
               || (call->x[GPB_C].uplo != 'G' && gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE))
               || (gpb_call_hermitian(call) && gpb_where_is(facts, GPB_C, GPB_PLACE_ELSEWHERE));
    if (!gpb_call_multiplies(call) || kernel->form == GPB_FORM_STRIDED) return false;
    return kernel->form == GPB_FORM_SLICED || !is_padded(kernel, call, facts, x);
}
