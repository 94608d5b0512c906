/* SPDX-License-Identifier: MIT */
/* See scale.h. */
#include "src/copy/scale.h"

static void scale_numbers(enum gpb_type type, void *column, int64_t first, int64_t last, gpb_scalar beta)
{
    switch (type) {
#define TYPE(letter, type, bytes, flops, kind)                                      \
    case GPB_TYPE_##letter:                                                         \
        for (int64_t i = first; i < last; i++) {                                    \
            type *c = (type *)column + i;                                           \
            *c = beta == 0 ? 0 : GPB_PRODUCT_##kind((type)beta, *c);                \
        }                                                                           \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: break;
    }
}

void gpb_scale_column(const gpb_call *g, gpb_scalar beta, void *column, gpb_matrix_rows rows,
                      int64_t diagonal)
{
    /* A real beta multiplies a complex column as real numbers, two an element. */
    const int reals = gpb_call_hermitian(g) && gpb_type_is_complex(g->type) ? 2 : 1;
    const enum gpb_type type = reals == 2 ? gpb_type_real(g->type) : g->type;
    scale_numbers(type, column, reals * rows.first, reals * rows.last, beta);
    if (gpb_call_hermitian(g) && diagonal >= rows.first && diagonal < rows.last)
        gpb_type_make_real(g->type, (char *)column + (size_t)diagonal * gpb_call_element(g));
}
