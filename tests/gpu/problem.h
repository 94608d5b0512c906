/* SPDX-License-Identifier: MIT */
/* One SGEMM problem of the GPU tests: operands, a call through the exported BLAS, and a check of its result
   against FP64. */
#ifndef GPB_PROBLEM_H
#define GPB_PROBLEM_H

#include "kernels/names.h"
#include "tests/gpu/operand.h"
#include "tests/reference.h"

/* SPECIAL: uniform with a few NaN and Inf. WIDE: +-2^U(-20,20). SUBNORMAL: products below 2^-126. INTEGER:
   every sum is exact. */
enum fill { FILL_UNIFORM, FILL_WIDE, FILL_INTEGER, FILL_SPECIAL, FILL_SUBNORMAL, FILLS };
extern const char *const fill_names[FILLS];

typedef struct problem {
    /* set by the caller */
    int m, n, k;
    char transa, transb;                 /* N, T or C, also in lower case */
    bool row_major;
    int pad, offset;                     /* added to each leading dimension; floats between allocation and
                                            first element */
    enum fill fill;
    enum place at[3];                    /* where A, B and C live */
    /* set by problem_make */
    int lda, ldb, ldc;
    operand a, b, c;
    int64_t entries;                     /* number of entries of C that are checked: all, or a sample if the
                                            problem is large */
    int64_t *entry;                      /* i + j*m of each, in column-major order */
    gpb_reference_element *element;      /* op(A) op(B) and |op(A)| |op(B)| there */
} problem;

/* True if only a sample of C is checked. */
bool problem_is_large(const problem *p);
void problem_make(problem *p);
void problem_free(problem *p);

/* Sets C as it is before the call: NaN in the padding, and everywhere if beta is 0, because C is never read
   then. */
void problem_fill_c(problem *p, float beta);
/* The call itself, through cblas_sgemm. */
void problem_call(const problem *p, float alpha, float beta);
/* Checks C, and that A, B and everything around C's block are unchanged. Prints the first fault. */
bool problem_check(const problem *p, float alpha, float beta, enum gpb_math math);
/* All three. */
bool problem_try(problem *p, float alpha, float beta, enum gpb_math math);

/* Calls computed on the GPU so far, without those that failed there. */
int64_t gpu_calls(void);
/* True if device 0 runs the kernels of that image of kernels/images.def. */
bool kernel_runs(const char *image);
/* gpublas_set_option, which must succeed. */
void set_option(const char *name, const char *value);

void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113, UPPER = 121, LOWER = 122 };

#endif
