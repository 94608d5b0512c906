/* SPDX-License-Identifier: MIT */
/* The question: one GEMM call in canonical form. Column-major, BLAS letters; the doors turn row-major and ILP64 into this. */
#ifndef GPB_CALL_H
#define GPB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* C[m x n] = alpha op(A)[m x k] op(B)[k x n] + beta C, `batch` times. Sizes, leading dimensions and strides in elements. */
typedef struct gpb_call {
    const char *symbol;          /* the exported name that was called, for the trace: "cblas_sgemm" */
    int width;                   /* bits of the caller's integers: 32 or 64 */
    char precision;              /* 's' 'd' 'c' 'z' */
    char transa, transb;         /* 'N' 'T' 'C' */
    char uplo;                   /* 'G' all of C; 'U' 'L' only that triangle (gemmtr: then m == n) */
    bool row_major;              /* the caller's order, for the trace only: everything here is column-major already */
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta;          /* real precisions; exact images of the caller's values */
    const void *a, *b;
    void *c;
    int64_t batch;               /* members; 1 for a plain GEMM */
    int64_t stride_a, stride_b, stride_c;               /* strided batch: distance between members */
    const void *const *a_array, *const *b_array;        /* pointer-array batch: NULL, or `batch` host-resident addresses */
    void *const *c_array;
} gpb_call;

/* Rows and columns of A and B as they are stored. */
static inline int64_t gpb_call_rows_a(const gpb_call *g) { return g->transa == 'N' ? g->m : g->k; }
static inline int64_t gpb_call_cols_a(const gpb_call *g) { return g->transa == 'N' ? g->k : g->m; }
static inline int64_t gpb_call_rows_b(const gpb_call *g) { return g->transb == 'N' ? g->k : g->n; }
static inline int64_t gpb_call_cols_b(const gpb_call *g) { return g->transb == 'N' ? g->n : g->k; }

/* True if A and B are read at all. */
static inline bool gpb_call_multiplies(const gpb_call *g) { return g->k > 0 && g->alpha != 0; }

/* Bytes of one element. */
static inline size_t gpb_call_element(const gpb_call *g)
{
    return g->precision == 's' ? 4 : g->precision == 'z' ? 16 : 8;
}

#endif
