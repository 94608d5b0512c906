/* SPDX-License-Identifier: MIT */
/* One operand as the caller stores it, and the rows of a triangle in a column. */
#ifndef GPB_MATRIX_H
#define GPB_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call, its facts, its plan and its run have three of each thing, one for each operand, indexed by this. */
enum gpb_operand { GPB_A, GPB_B, GPB_C, GPB_OPERANDS };

/* What the elements that are not stored are. */
enum gpb_structure { GPB_GENERAL, GPB_SYMMETRIC, GPB_HERMITIAN, GPB_TRIANGULAR };

/* Column-major. The call's m, n, k and `trans` give its rows and columns (call.h). */
typedef struct gpb_matrix {
    const void *base;            /* member 0, unless there is an array. C's may be written */
    const void *const *array;    /* of a pointer-array batch: one address for each member, in host memory;
                                    else NULL */
    int64_t stride;              /* of a strided batch: elements from a member to the next */
    int64_t ld;                  /* elements from a column to the next */
    char trans;                  /* op(X): 'N' 'T' 'C' */
    bool conj;                   /* conjugated in addition: with 'N', conjugated and not transposed */
    enum gpb_structure structure;
    char uplo;                   /* the stored triangle, or for C the written one: 'U' 'L'; 'G': all. Nothing
                                    of a GENERAL A or B */
    char diag;                   /* of a triangular matrix: 'U' if the diagonal is all ones and not read; else
                                    'N' */
} gpb_matrix;

/* Where a member begins. bytes: of an element. */
static inline void *gpb_matrix_member(const gpb_matrix *x, int64_t member, size_t bytes)
{
    return (void *)(x->array ? (uintptr_t)x->array[member] : (uintptr_t)x->base
                    + (uintptr_t)(x->stride * member) * bytes);
}

static inline bool gpb_matrix_transposed(const gpb_matrix *x) { return x->trans != 'N'; }

/* True if op(X) is conjugated, which means nothing for real types. */
static inline bool gpb_matrix_conjugated(const gpb_matrix *x) { return (x->trans == 'C') != x->conj; }

/* Rows [first, last), counted from the block's first row. */
typedef struct gpb_matrix_rows {
    int64_t first, last;
} gpb_matrix_rows;

/* The rows of a column that belong to the triangle ('G': all), in a block of a matrix that has `rows` rows
   and begins at row `row0`. col: the column's number in the whole matrix. first == last: none. */
static inline gpb_matrix_rows gpb_matrix_rows_of(char uplo, int64_t row0, int64_t rows, int64_t col)
{
    const int64_t diagonal = col - row0, above = diagonal < 0 ? 0 : diagonal < rows ? diagonal : rows;
    const int64_t with = diagonal + 1 < 0 ? 0 : diagonal + 1 < rows ? diagonal + 1 : rows;
    return (gpb_matrix_rows){ uplo == 'L' ? above : 0, uplo == 'U' ? with : rows };
}

#endif
