/* SPDX-License-Identifier: MIT */
/* A slow product that is right, and the error bound that every kernel of ours keeps. All tests share them.
   The four types of BLAS are computed at twice their precision: s and c in double, d and z in pairs of
   doubles. A complex number is judged part by part, because a large real part must not hide errors of a small
   imaginary one. A and B may be of any structure (dispatch/matrix.h). A call of SYR2K or HER2K stands for
   both products here, and describes the first. */
#ifndef GPB_REFERENCE_H
#define GPB_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "kernels/names.h"

/* One part of an element of the answer. `product` is |alpha| |A| |B| there, `old` is |beta C|: both are sums
   of the absolute values of all terms. The answer is value + rest, and `rest` is what one double cannot hold
   of it (0 for s and c). real: it lies on the diagonal of a Hermitian C, so its imaginary part is to be 0,
   and that of C before does not count. (A call that has nothing to do leaves it as it is.) */
typedef struct gpb_reference_element {
    double value, product, old, rest;
    bool real;
} gpb_reference_element;

/* Element (i, j) of batch member l: its real part, and with part 1 its imaginary one. c_before is C as it was
   (not read if beta == 0). */
gpb_reference_element gpb_reference_at(const gpb_call *call, const void *c_before, int64_t i, int64_t j,
                                       int64_t l);
gpb_reference_element gpb_reference_part(const gpb_call *call, const void *c_before, int64_t i, int64_t j,
                                         int64_t l, int part);

/* The same in two steps, for tests that ask for many alpha and beta: both parts of A B at that place, of
   SYR2K and HER2K also those of the second product; and one part of alpha times these plus beta times
   `before`, the element of C from before (not read if beta == 0). */
enum { GPB_REFERENCE_SUMS = 4 };
void gpb_reference_sums(const gpb_call *call, int64_t i, int64_t j, int64_t l,
                        gpb_reference_element sums[GPB_REFERENCE_SUMS]);
gpb_reference_element gpb_reference_scaled(const gpb_call *call,
                                           const gpb_reference_element sums[GPB_REFERENCE_SUMS],
                                           const void *before, int part);

/* The same sums, many of one call, whose operands are copied for that: some times as fast, and as exact.
   NULL if `count` of them are not worth it, or it cannot be done here. The call has to outlive it. */
typedef struct gpb_reference_lines gpb_reference_lines;
gpb_reference_lines *gpb_reference_lines_make(const gpb_call *call, int64_t count);
void gpb_reference_lines_sums(const gpb_reference_lines *lines, int64_t i, int64_t j, int64_t l,
                              gpb_reference_element sums[GPB_REFERENCE_SUMS]);
void gpb_reference_lines_free(gpb_reference_lines *lines);

/* How far a result may be from e: (k + 4) u product + 2 u old, where u is 2^-24 for s and 2^-53 for d. A part
   of a complex element has 2 k terms, and its beta C has two: (2 k + 4) u product + 3 u old. SYR2K and HER2K
   have twice as many terms, and u old more, because C is rounded once more. TF32 may be off by 2^-9 product
   more. */
double gpb_reference_bound(enum gpb_math math, const gpb_call *call, gpb_reference_element e);

/* A part of an element of the call's type. */
double gpb_reference_value(const gpb_call *call, const void *element, int part);

/* The error of that part of a result (in an element of the call's type) in units of the bound: right if at
   most 1. INFINITY if a NaN or an infinity is lost or invented. */
double gpb_reference_error(enum gpb_math math, const gpb_call *call, gpb_reference_element e,
                           const void *result, int part);

/* For tests that look at millions of results: what of a bound is the same for all of them. */
typedef struct gpb_reference_quick {
    int parts;
    bool single, can, reads;
    double alpha[2], beta[2], of_product, of_old;
} gpb_reference_quick;
gpb_reference_quick gpb_reference_quick_of(enum gpb_math math, const gpb_call *call);

/* True if that part of a result is right for certain: finite, and within the bound even if every step here
   was rounded the wrong way. False: gpb_reference_error has to say. */
static inline bool gpb_reference_surely(const gpb_reference_quick *q, const gpb_reference_element sums[2],
                                        const void *before, const void *result, int part)
{
    double got, old[2] = { 0, 0 }, wanted = 0, size = 0, of_old = 0;
    if (!q->can) return false;
    got = q->single ? (double)((const float *)result)[part] : ((const double *)result)[part];
    for (int x = 0; x < q->parts && q->reads; x++)
        old[x] = q->single ? (double)((const float *)before)[x] : ((const double *)before)[x];
    for (int x = 0; x < q->parts; x++) {
        const gpb_reference_element *e = &sums[q->parts == 2 ? part ^ x : 0];
        const double alpha = x && !part ? -q->alpha[x] : q->alpha[x];
        const double beta = x && !part ? -q->beta[x] : q->beta[x], was = old[q->parts == 2 ? part ^ x : 0];
        wanted += alpha * e->value + alpha * e->rest + beta * was;
        size += __builtin_fabs(alpha) * e->product;
        of_old += __builtin_fabs(beta * was);
    }
    /* Only a finite sum is no larger than anything. */
    return __builtin_fabs(got - wanted) <= q->of_product * size + q->of_old * of_old;
}

/* Checks call->c after a call. c_before: a copy of the whole buffer of C, `bytes` long, taken before the
   call. Returns the worst error in units of the bound. INFINITY also if anything outside the m x n blocks, or
   outside the triangle that uplo names, has changed. Pointer-array batches are checked member by member, with
   calls of their own. */
double gpb_reference_check(enum gpb_math math, const gpb_call *call, const void *c_before, size_t bytes);

/* The same for a large call with finite operands, its blocks in ascending order. Everything outside the
   blocks is looked at. Inside, everything is looked at for infinities and for NaN (which C was full of, if
   beta == 0). About `sample` results, drawn by *state, are compared with the reference: one in each column if
   there are enough. */
double gpb_reference_sample(enum gpb_math math, const gpb_call *call, const void *c_before, size_t bytes,
                            int64_t sample, uint64_t *state);

/* The next of *state's random numbers, < below. */
uint64_t gpb_reference_draw(uint64_t *state, uint64_t below);
/* Test data: count floats in (-1, 1), the same for the same seed. */
void gpb_reference_fill(float *x, size_t count, uint64_t seed);

#endif
