/* SPDX-License-Identifier: MIT */
/* GEMM, SYMM, SYRK, SYR2K and the Hermitian ones in all four types by plain loops, in the arithmetic of the
   type itself: what a check must find right. Tests spoil it to see whether the check notices. */
#ifndef GPB_PLAIN_PRODUCT_H
#define GPB_PLAIN_PRODUCT_H

#include <stdlib.h>

#include "dispatch/call.h"

static inline bool is_real(enum gpb_type type) { return gpb_type_of(type)->kind == GPB_TYPE_REAL; }
static inline bool is_single(enum gpb_type type) { return type == GPB_TYPE_s || type == GPB_TYPE_c; }

/* Real numbers of a buffer. A complex element is two of them. */
static inline double read_real(enum gpb_type type, const void *at, int64_t which)
{
    return is_single(type) ? (double)((const float *)at)[which] : ((const double *)at)[which];
}

static inline void write_real(enum gpb_type type, void *at, int64_t which, double x)
{
    if (is_single(type)) ((float *)at)[which] = (float)x;
    else ((double *)at)[which] = x;
}

/* Where element (row, col) of op(X) lies in X. */
static inline int64_t place(const gpb_matrix *of, int64_t row, int64_t col)
{
    return of->trans == 'N' ? row + col * of->ld : col + row * of->ld;
}

/* True if the element is the mirror image of a stored one. */
static inline bool is_image(const gpb_matrix *of, int64_t row, int64_t col)
{
    const bool mirrors = of->structure == GPB_SYMMETRIC || of->structure == GPB_HERMITIAN;
    return mirrors && (of->uplo == 'U' ? row > col : row < col);
}

/* ~ is the complex conjugate (GNU C), without <complex.h>. */
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    static type operand_##letter(const gpb_matrix *of, int64_t row, int64_t col)                        \
    {                                                                                                   \
        const bool image = is_image(of, row, col), hermitian = of->structure == GPB_HERMITIAN;          \
        const int64_t at = image ? place(of, col, row) : place(of, row, col);                           \
        const double _Complex value = ((const type *)of->base)[at];                                     \
        if (hermitian && row == col) return (type)__real__ value;                                       \
        return (type)((of->trans == 'C') != (hermitian && image) ? ~value : value);                     \
    }                                                                                                   \
    static void multiply_##letter(const gpb_call *g)                                                    \
    {                                                                                                   \
        type *c = gpb_call_member(g, GPB_C, 0);                                                         \
        for (int64_t j = 0; j < g->n; j++) {                                                            \
            const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);              \
            for (int64_t i = rows.first; i < rows.last; i++) {                                          \
                type sum = 0, *at = &c[i + j * g->x[GPB_C].ld];                                         \
                const bool real = gpb_call_hermitian(g) && i == j;                                      \
                if (real) *at = __real__ *at;                                                           \
                for (int64_t p = 0; p < g->k; p++)                                                      \
                    sum += operand_##letter(&g->x[GPB_A], i, p) * operand_##letter(&g->x[GPB_B], p, j); \
                *at = (type)g->alpha * sum + (g->beta == 0 ? 0 : (type)g->beta * *at);                  \
                if (real) *at = __real__ *at;                                                           \
            }                                                                                           \
        }                                                                                               \
    }
#include "dispatch/type.def"
#undef TYPE

static inline void multiply_once(const gpb_call *g)
{
    switch (g->type) {
#define TYPE(letter, type, bytes, flops, kind) case GPB_TYPE_##letter: multiply_##letter(g); break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

/* Of operands without a structure or symmetric ones, which are not transposed. */
static inline void multiply(const gpb_call *g)
{
    const gpb_call second = gpb_call_second(g);
    multiply_once(g);
    if (g->routine == GPB_ROUTINE_SYR2K) multiply_once(&second);
}

#endif
