/* SPDX-License-Identifier: MIT */
/* The parts of test_accuracy: data by name, products in FP64 at sampled places, errors, cuBLAS as a rival. X stands for op(A), m rows, or
   for op(B) transposed, n rows; both lie row by row, k apart: op is T for A, N for B. */
#ifndef GPB_ACCURACY_H
#define GPB_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

enum accuracy_guard { GUARD_CLEAN, GUARD_MARKED, GUARD_EITHER };
enum accuracy_result { RESULT_BOUNDED, RESULT_FEW, RESULT_ROUNDING, RESULT_EXACT, RESULT_LIMIT, RESULT_HOSTILE };
typedef struct accuracy_pattern {          /* a row's element: of (row, place in k, k, the row's random number, the element's own) */
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

/* accuracy_measure.c. The sample: `side` rows and as many columns, evenly spread. */
typedef struct accuracy_truth {
    int64_t m, n, k;
    int side;
    const float *a, *b;
    double *value, *product;               /* A B and |A||B| at sampled row x, column y: [x + y*side] */
} accuracy_truth;
void accuracy_truth_find(accuracy_truth *t);
int64_t accuracy_place(int64_t size, int side, int x);

typedef struct accuracy_error {
    double max, rms, frobenius;            /* of |e| / (|A||B|) in units of 2^-24; |e| / |C| in the Frobenius norm */
    double bound, bound_tf32;              /* of what is promised: FP32's bound; the TF32 kernels' */
    int64_t wrong;                         /* places where |A||B| is 0 or exactness is demanded, and the result is not exact */
} accuracy_error;
/* C against the truth. exact: where to demand exactness, or NULL. */
accuracy_error accuracy_measure(const accuracy_truth *t, const float *c, const bool *exact);
/* Notes where C is exact and |A||B| <= 2^24. */
void accuracy_note_exact(const accuracy_truth *t, const float *c, bool *exact);
/* Calls work(i, what) for i < count, on all cores. */
void accuracy_parallel(void (*work)(int64_t, void *), int64_t count, void *what);

/* accuracy_cublas.c: C[m x n] = A' B in cuBLAS's default FP32 mode. False where there is no cuBLAS. */
bool accuracy_cublas_open(void);
void accuracy_cublas(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);

#endif
