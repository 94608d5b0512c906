/* SPDX-License-Identifier: MIT */
/* The parts of test_accuracy: data by name, products in FP64 at sampled places, errors, and cuBLAS for
   comparison. X is op(A), m rows, or op(B) transposed, n rows. Both are stored row by row, k elements apart,
   so op is T for A and N for B. */
#ifndef GPB_ACCURACY_H
#define GPB_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/type.h"

enum accuracy_guard { GUARD_CLEAN, GUARD_MARKED, GUARD_EITHER };
enum accuracy_result {
    RESULT_BOUNDED,
    RESULT_FEW,
    RESULT_ROUNDING,
    RESULT_EXACT,
    RESULT_LIMIT,
    RESULT_HOSTILE
};
/* Sums of integers are exact if their magnitudes add up to no more. It is not 2^24, because a slice may be
   larger than its element (ACCURACY.md). */
#define ACCURACY_EXACT_SUM (0x1p24 - 0x1p18)
/* One element of a row, from the row, the place in k, k, the row's random number and the element's own. */
typedef struct accuracy_pattern {
    float (*of)(int64_t row, int64_t p, int64_t k, uint64_t row_bits, uint64_t bits, int number);
    int number;
} accuracy_pattern;
typedef struct accuracy_data {
    const char *name;
    accuracy_pattern a, b;
    enum accuracy_guard guard;
    enum accuracy_result result;
} accuracy_data;
extern const accuracy_data accuracy_datas[];
extern const int accuracy_data_count;

/* accuracy_data.c: rows x k floats of a pattern. */
void accuracy_fill(float *x, int64_t rows, int64_t k, accuracy_pattern pattern, uint64_t seed);

/* accuracy_measure.c: the sample is `side` rows and as many columns, evenly spread. */
typedef struct accuracy_truth {
    int64_t m, n, k;
    int side;
    const float *a, *b;
    double *value, *product;               /* A B and |A||B| at sampled row x and column y: [x + y*side] */
} accuracy_truth;
void accuracy_truth_find(accuracy_truth *t);
int64_t accuracy_place(int64_t size, int side, int x);

typedef struct accuracy_error {
    double max, rms, frobenius;            /* |e| / (|A||B|) in units of 2^-24; |e| / |C| in the Frobenius
                                              norm */
    double bound, bound_tf32;              /* what is promised: FP32's bound; the bound of TF32 kernels */
    int64_t wrong;                         /* wrong places where |A||B| is 0 or the result must be exact */
} accuracy_error;
/* Compares C with the truth. exact: where the result must be exact, or NULL. */
accuracy_error accuracy_measure(const accuracy_truth *t, const float *c, const bool *exact);
/* Notes the places where C is exact and |A||B| <= 2^24. */
void accuracy_note_exact(const accuracy_truth *t, const float *c, bool *exact);
/* Calls work(i, what) for i < count, on all cores. */
void accuracy_parallel(void (*work)(int64_t, void *), int64_t count, void *what);

/* accuracy_cublas.c: C[m x n] = A' B in cuBLAS's default mode, A conjugated in complex types. False if there
   is no cuBLAS. */
bool accuracy_cublas_open(void);
void accuracy_cublas(enum gpb_type type, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                     void *c);

#endif
