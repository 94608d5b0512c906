/* SPDX-License-Identifier: MIT */
/* The rule; see packing.h. */
#include "dispatch/packing.h"

#include "kernels/residues.h"

#define ALIGNED 256               /* bytes */

static bool multiple(int64_t size, int tile)      /* tiles are powers of two, as test_kernel_table.c checks */
{
    return (size & (tile - 1)) == 0;
}

/* True if count elements of that many bytes fill whole lines. The product may not fit, because a caller's
   leading dimension can be anything. */
static bool in_lines(int64_t count, int64_t element, int line)
{
    return multiple((count & (line - 1)) * element, line);
}

bool gpb_packing_aligned(const gpb_call *call, enum gpb_operand which)
{
    const gpb_matrix *x = &call->x[which];
    const int64_t element = (int64_t)gpb_call_element(call);
    return !x->array && (uintptr_t)x->base % ALIGNED == 0 && in_lines(x->ld, element, ALIGNED)
           && (call->batch == 1 || in_lines(x->stride, element, ALIGNED));
}

static enum gpb_operand other(enum gpb_operand x) { return x == GPB_A ? GPB_B : GPB_A; }

static bool lies_right(const gpb_call *call, const gpb_facts *facts, enum gpb_operand x)
{
    return !gpb_where_is(facts, x, GPB_PLACE_DEVICE) || gpb_packing_aligned(call, x);
}

/* True if a PADDED kernel can read A or B as it is: stored as op(X), in whole tiles. In the second product of
   SYR2K the other matrix is in its place. */
static bool is_padded(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                      enum gpb_operand x)
{
    const bool whole = multiple(gpb_call_extent(call, x), gpb_kernel_table_edge(kernel, x))
                       && multiple(call->k, kernel->bk);
    return whole && !gpb_matrix_transposed(&call->x[x]) && lies_right(call, facts, x)
           && (gpb_call_products(call) == 1 || lies_right(call, facts, other(x)));
}

/* True if a tensor map can describe the operand. */
static bool is_mapped(const gpb_call *call, const gpb_facts *facts, enum gpb_operand which)
{
    enum { LINE = 16 };                    /* bytes, of cuTensorMapEncodeTiled's strides and addresses */
    const int64_t most = INT64_C(1) << 40; /* a stride is less */
    const gpb_matrix *x = &call->x[which];
    const int64_t element = (int64_t)gpb_call_element(call), longest = most / element;
    if (!gpb_where_is(facts, which, GPB_PLACE_DEVICE)) {      /* it comes to a panel without gaps */
        const int64_t down = gpb_call_k_down(call, which) ? call->k : gpb_call_extent(call, which);
        return in_lines(down, element, LINE);
    }
    return !x->array && (uintptr_t)x->base % LINE == 0 && x->ld < longest && in_lines(x->ld, element, LINE)
           && (call->batch == 1
               || (x->stride >= 0 && x->stride < longest && in_lines(x->stride, element, LINE)));
}

bool gpb_packing_mapped(const gpb_call *call, const gpb_facts *facts, enum gpb_operand which)
{
    return is_mapped(call, facts, which)
           && (gpb_call_products(call) == 1 || is_mapped(call, facts, other(which)));
}

bool gpb_packing_can(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    /* The places of boxes beyond an edge have 32 bits as well, and complex numbers two each. */
    const int64_t most = INT32_MAX / (gpb_type_is_complex(kernel->type) ? 2 : 1) - 256;
    if (call->joined
        && (kernel->form != GPB_FORM_MAPPED || call->k > most / 2 || !gpb_packing_mapped(call, facts, GPB_A)))
        return false;
    if (kernel->form == GPB_FORM_RESIDUES) return !facts->gpu.no_residues && call->k <= GPB_RESIDUE_MAX_K;
    /* It adds to no C, as the second product of SYR2K does. */
    if (kernel->form == GPB_FORM_PADDED_C) return gpb_call_products(call) == 1;
    return kernel->form != GPB_FORM_MAPPED
           || (!facts->gpu.no_maps && call->m <= most && call->n <= most && call->k <= most
               && call->batch <= most);
}

bool gpb_packing_into_triangle(const gpb_call *call, const gpb_facts *facts)
{
    return call->x[GPB_C].uplo != 'G' && gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE)
           && gpb_call_apart(call) == 1;
}

int gpb_packing_triangle(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    return gpb_packing_into_triangle(call, facts) && kernel->form != GPB_FORM_PADDED_C
           && !gpb_kernel_table_can(kernel, GPB_CAP_WHOLE)
           ? call->x[GPB_C].uplo : 0;
}

bool gpb_packing_one(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    const bool residues = kernel->form == GPB_FORM_RESIDUES;
    return gpb_kernel_table_guarded(kernel) && !gpb_type_is_complex(kernel->type)
           && gpb_call_one_matrix(call) && gpb_where_is(facts, GPB_A, GPB_PLACE_DEVICE)
           && (!residues || gpb_residue_rows(1, call->n) == gpb_residue_rows(0, call->n));
}

bool gpb_packing_hinders(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts)
{
    return kernel->form == GPB_FORM_MAPPED
           && (gpb_packing_of(kernel, call, facts, GPB_A) || gpb_packing_of(kernel, call, facts, GPB_B));
}

bool gpb_packing_of(const gpb_kernel *kernel, const gpb_call *call, const gpb_facts *facts,
                    enum gpb_operand x)
{
    if (x == GPB_C)
        return kernel->form == GPB_FORM_PADDED_C
               || (call->x[GPB_C].uplo != 'G' && gpb_where_is(facts, GPB_C, GPB_PLACE_DEVICE)
                   && !gpb_packing_triangle(kernel, call, facts))
               || (gpb_call_hermitian(call) && gpb_where_is(facts, GPB_C, GPB_PLACE_ELSEWHERE));
    if (!gpb_call_multiplies(call) || kernel->form == GPB_FORM_STRIDED) return false;
    if (kernel->form == GPB_FORM_MAPPED) return !gpb_packing_mapped(call, facts, x);
    return gpb_kernel_table_guarded(kernel) || !is_padded(kernel, call, facts, x);
}
