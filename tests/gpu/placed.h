/* SPDX-License-Identifier: MIT */
/* A problem (tests/problem.h) in memory: its operands, a call through the exported BLAS, and a check of its
   result against the reference. */
#ifndef GPB_PLACED_H
#define GPB_PLACED_H

#include "tests/gpu/call.h"
#include "tests/gpu/operand.h"
#include "tests/problem.h"

typedef struct placed {
    gpb_problem of;
    enum place at[GPB_OPERANDS];
    int shift;                           /* bytes by which operands are off an element's alignment */
    /* set by placed_make */
    operand x[GPB_OPERANDS];
    int64_t stride[GPB_OPERANDS];        /* elements from a member of a batch to the next */
    int64_t entries;                     /* number of entries of C that are checked: all that are written, or
                                            a sample if the problem is large */
    int64_t *entry;                      /* i + (j + l*n)*m of each, in column-major order */
    gpb_reference_element (*sums)[GPB_REFERENCE_SUMS];    /* gpb_reference_sums there */
} placed;

/* The fills that every kernel is tried with. */
enum { PLACED_FILLS = 5 };
extern const enum gpb_fill placed_fills[PLACED_FILLS];

/* True if only a sample of C is checked. */
bool placed_is_large(const placed *p);
void placed_make(placed *p);
void placed_free(placed *p);

/* alpha and beta are rounded to the problem's type, and of a real one their imaginary parts are nothing.
   Sets C as it is before the call: poison around it, and everywhere if beta is 0, because C is never read
   then. */
void placed_fill_c(placed *p, gpb_scalar beta);
/* The call itself, through CBLAS. */
void placed_call(const placed *p, gpb_scalar alpha, gpb_scalar beta);
/* Checks C, and that A, B and everything around C's block are unchanged. Prints the first fault. */
bool placed_check(const placed *p, gpb_scalar alpha, gpb_scalar beta, enum gpb_math math);
/* All three. */
bool placed_try(placed *p, gpb_scalar alpha, gpb_scalar beta, enum gpb_math math);

/* Calls computed on the GPU so far, without those that failed there. */
int64_t gpu_calls(void);
/* True if device 0 runs the kernels of that image of kernels/images.def. */
bool kernel_runs(const char *image);
/* True if it runs a kernel of that type. */
bool type_runs(enum gpb_type type);
/* gpublas_set_option, which must succeed. */
void set_option(const char *name, const char *value);

#endif
