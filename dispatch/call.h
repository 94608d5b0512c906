/* SPDX-License-Identifier: MIT */
/* The question: one call in canonical form, column-major with BLAS letters. The doors turn row-major calls
   and 64-bit integers into this. */
#ifndef GPB_CALL_H
#define GPB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/matrix.h"
#include "dispatch/type.h"

/* What is learnt of the host and the GPU is learnt apart for each. GEMM includes GEMMTR, which has a triangle
   in C; SYRK includes HERK, SYR2K HER2K, and SYMM HEMM. TRSM is of batches alone (triangular.h has others).
   */
enum gpb_routine {
    GPB_ROUTINE_GEMM,
    GPB_ROUTINE_SYRK,
    GPB_ROUTINE_SYR2K,
    GPB_ROUTINE_SYMM,
    GPB_ROUTINE_TRSM,
    GPB_ROUTINES
};

/* C[m x n] = alpha op(A)[m x k] op(B)[k x n] + beta C, `batch` times. Sizes, leading dimensions and strides
   in elements. SYRK and HERK are such products, too: B is A, and op(B) is op(A)^T or op(A)^H. HERK's C is
   GPB_HERMITIAN: its diagonal becomes real, the imaginary parts there are not read, and beta is real, so that
   it multiplies real and imaginary parts each by itself. SYR2K and HER2K are the sum of two such products:
   that which the call describes, and gpb_call_second. SYMM and HEMM are products of which A or, on the
   right, B is square and GPB_SYMMETRIC or GPB_HERMITIAN: its other triangle is not read, nor are imaginary
   parts on a Hermitian diagonal. TRSM has a GPB_TRIANGULAR A or, on the right, B, which divides:
   C = alpha op(A)^-1 B or alpha A op(B)^-1. The other operand is C as it was, k the triangle's order, and
   beta 0. */
typedef struct gpb_call {
    const char *symbol;          /* the exported name that was called, for the trace: "cblas_sgemm" */
    enum gpb_routine routine;
    enum gpb_type type;          /* of all elements */
    int width;                   /* bits of the caller's integers: 32 or 64 */
    bool row_major;              /* the caller's order, for the trace only, because everything here is
                                    column-major */
    int64_t m, n, k;             /* m == n if C has a triangle */
    gpb_scalar alpha, beta;
    gpb_matrix x[GPB_OPERANDS];
    int64_t batch;               /* members of the batch; 1 for a plain GEMM */
    bool joined;                 /* of SYR2K and HER2K: one launch computes the sum of both products
                                    (gpb_call_joined) */
} gpb_call;

/* Rows and columns of an operand as stored. */
static inline int64_t gpb_call_rows(const gpb_call *g, enum gpb_operand x)
{
    const bool transposed = gpb_matrix_transposed(&g->x[x]);
    return x == GPB_C ? g->m : x == GPB_A ? (transposed ? g->k : g->m) : transposed ? g->n : g->k;
}

static inline int64_t gpb_call_cols(const gpb_call *g, enum gpb_operand x)
{
    const bool transposed = gpb_matrix_transposed(&g->x[x]);
    return x == GPB_C ? g->n : x == GPB_A ? (transposed ? g->m : g->k) : transposed ? g->k : g->n;
}

/* Rows of op(A), columns of op(B): how far the operand spans C. */
static inline int64_t gpb_call_extent(const gpb_call *g, enum gpb_operand x)
{
    return x == GPB_A ? g->m : g->n;
}

/* True if A or B is stored with k down its columns. */
static inline bool gpb_call_k_down(const gpb_call *g, enum gpb_operand x)
{
    return gpb_matrix_transposed(&g->x[x]) == (x == GPB_A);
}

/* True if A and B are read at all. */
static inline bool gpb_call_multiplies(const gpb_call *g) { return g->k > 0 && g->alpha != 0; }

/* How many products the call is the sum of: 2 of SYR2K and HER2K. */
static inline int gpb_call_products(const gpb_call *g) { return g->routine == GPB_ROUTINE_SYR2K ? 2 : 1; }

/* How many of them are launches of their own. */
static inline int gpb_call_apart(const gpb_call *g) { return g->joined ? 1 : gpb_call_products(g); }

/* True if op(B) is op(A)^T or op(A)^H of one matrix, or of one in each member, and nothing else is added. */
static inline bool gpb_call_one_matrix(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    return gpb_call_products(g) == 1 && a->base == b->base && a->array == b->array && a->ld == b->ld
           && a->stride == b->stride && g->m == g->n
           && gpb_matrix_transposed(a) != gpb_matrix_transposed(b);
}

/* True of HERK and HER2K. */
static inline bool gpb_call_hermitian(const gpb_call *g)
{
    return g->x[GPB_C].structure == GPB_HERMITIAN;
}

/* The second product of SYR2K or HER2K, which is added to `first`, that with beta: A and B change places. The
   diagonal of a Hermitian C is right because the real part of a sum is the sum of the real parts. */
static inline gpb_call gpb_call_second(const gpb_call *first)
{
    const gpb_scalar alpha = first->alpha;
    gpb_call second = *first;
    second.x[GPB_A].base = first->x[GPB_B].base;
    second.x[GPB_A].ld = first->x[GPB_B].ld;
    second.x[GPB_B].base = first->x[GPB_A].base;
    second.x[GPB_B].ld = first->x[GPB_A].ld;
    if (gpb_call_hermitian(first)) second.alpha = __builtin_complex(__real__ alpha, -__imag__ alpha);
    second.beta = 1;
    return second;
}

/* One of the two products by itself. */
static inline gpb_call gpb_call_alone(const gpb_call *product)
{
    gpb_call alone = *product;
    alone.routine = GPB_ROUTINE_GEMM;
    return alone;
}

/* SYR2K or HER2K as one product of depth 2k, whose first k are the one product's and whose second k the
   other's (gpb_mapped_args). That needs one alpha, and k > 1, or both strides of op(A) may be 1. */
static inline bool gpb_call_joins(const gpb_call *g)
{
    return gpb_call_products(g) == 2 && g->k > 1 && g->batch == 1
           && (!gpb_call_hermitian(g) || __imag__ g->alpha == 0);
}
static inline gpb_call gpb_call_joined(const gpb_call *g)
{
    gpb_call joined = *g;
    joined.joined = true;
    return joined;
}

/* True of an A or B of which one triangle is read, and the rest is its mirror image. */
static inline bool gpb_call_mirrors(const gpb_call *g, enum gpb_operand x)
{
    const enum gpb_structure structure = g->x[x].structure;
    return x != GPB_C && (structure == GPB_SYMMETRIC || structure == GPB_HERMITIAN);
}

/* That operand; GPB_C: there is none. */
static inline enum gpb_operand gpb_call_mirrored(const gpb_call *g)
{
    return gpb_call_mirrors(g, GPB_A) ? GPB_A : gpb_call_mirrors(g, GPB_B) ? GPB_B : GPB_C;
}

/* The product of the same, if all of that operand were stored at that address, with ld. */
static inline gpb_call gpb_call_whole(const gpb_call *g, enum gpb_operand x, const void *at, int64_t ld)
{
    gpb_call whole = *g;
    whole.routine = GPB_ROUTINE_GEMM;
    whole.x[x].structure = GPB_GENERAL;
    whole.x[x].uplo = 'G';
    whole.x[x].base = at;
    whole.x[x].ld = ld;
    return whole;
}

/* True of TRSM; its triangle. */
static inline bool gpb_call_solves(const gpb_call *g) { return g->routine == GPB_ROUTINE_TRSM; }
static inline enum gpb_operand gpb_call_triangle(const gpb_call *g)
{
    return g->x[GPB_A].structure == GPB_TRIANGULAR ? GPB_A : GPB_B;
}

/* k if A and B are read, else 0. */
static inline int64_t gpb_call_depth(const gpb_call *g) { return gpb_call_multiplies(g) ? g->k : 0; }

/* Elements of an operand that are multiplied or written, over all members. */
static inline double gpb_call_elements(const gpb_call *g, enum gpb_operand x)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)gpb_call_depth(g);
    return (x == GPB_A ? m * k : x == GPB_B ? k * n : m * n) * (double)g->batch;
}

/* True for a pointer-array batch. */
static inline bool gpb_call_arrays(const gpb_call *g)
{
    return g->x[GPB_A].array || g->x[GPB_B].array || g->x[GPB_C].array;
}

/* Where a member of an operand begins. */
static inline void *gpb_call_member(const gpb_call *g, enum gpb_operand x, int64_t member)
{
    return gpb_matrix_member(&g->x[x], member, gpb_type_bytes(g->type));
}

/* Bytes of one element. */
static inline size_t gpb_call_element(const gpb_call *g) { return gpb_type_bytes(g->type); }

#endif
