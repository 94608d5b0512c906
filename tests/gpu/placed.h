/* SPDX-License-Identifier: MIT */
/* A problem (tests/problem.h) in memory: its operands, a call through the exported BLAS, and a check of its
   result against the reference. */
#ifndef GPB_PLACED_H
#define GPB_PLACED_H

#include "tests/gpu/operand.h"
#include "tests/problem.h"

typedef struct placed {
    gpb_problem of;
    enum place at[GPB_OPERANDS];
    /* set by placed_make */
    operand x[GPB_OPERANDS];
    int64_t entries;                     /* number of entries of C that are checked: all, or a sample if the
                                            problem is large */
    int64_t *entry;                      /* i + j*m of each, in column-major order */
    gpb_reference_element (*sums)[2];    /* both parts of op(A) op(B) there */
} placed;

/* The fills that every kernel is tried with. */
enum { PLACED_FILLS = 5 };
extern const enum gpb_fill placed_fills[PLACED_FILLS];

/* True if only a sample of C is checked. */
bool placed_is_large(const placed *p);
void placed_make(placed *p);
void placed_free(placed *p);

/* Sets C as it is before the call: poison around it, and everywhere if beta is 0, because C is never read
   then. */
void placed_fill_c(placed *p, float beta);
/* The call itself, through cblas_sgemm. */
void placed_call(const placed *p, float alpha, float beta);
/* Checks C, and that A, B and everything around C's block are unchanged. Prints the first fault. */
bool placed_check(const placed *p, float alpha, float beta, enum gpb_math math);
/* All three. */
bool placed_try(placed *p, float alpha, float beta, enum gpb_math math);

/* Calls computed on the GPU so far, without those that failed there. */
int64_t gpu_calls(void);
/* True if device 0 runs the kernels of that image of kernels/images.def. */
bool kernel_runs(const char *image);
/* gpublas_set_option, which must succeed. */
void set_option(const char *name, const char *value);

void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum {
    ROW_MAJOR = 101,
    COLUMN_MAJOR = 102,
    NO_TRANS = 111,
    TRANS = 112,
    CONJ_TRANS = 113,
    UPPER = 121,
    LOWER = 122
};

#endif
