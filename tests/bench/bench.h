/* SPDX-License-Identifier: MIT */
/* What the two benches share: the clock, medians, and the error of a sample against FP64. */
#ifndef GPB_BENCH_H
#define GPB_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/reference.h"

typedef struct bench_options {
    const char *library;        /* libgpublas.so */
    const char *host_blas;      /* end to end: the host BLAS to compare with, and that ours falls back to */
    const char *nvblas;         /* end to end: libnvblas.so */
    const char *csv;            /* where to write the CSV, or NULL */
    const char *only;           /* ladder: this kernel alone, or NULL */
    const char *suites, *modes; /* device: names with commas between them, NULL: all; fit: of suites, NULL: random shapes */
    double seconds;             /* ladder: once they have passed, every kernel is timed once per shape; device, fit: all of it */
    int shapes, seed;           /* fit: how many random shapes at most; which ones */
    int largest;                /* shapes with a side above this are left out */
} bench_options;

/* Exit codes: 0, or 1 if an answer was wrong or a call did not run where it should have. 77: no GPU. */
int bench_ladder(const bench_options *options);
int bench_device(const bench_options *options);
int bench_fit(const bench_options *options);
int bench_end_to_end(const bench_options *options);
/* A child of bench_end_to_end: times one library's sgemm_ and prints lines for its parent. */
int bench_worker(const bench_options *options);

typedef struct spread { double median, least, most; int count; } spread;

double seconds_now(void);
spread spread_of(double *values, int count);           /* sorts them */
void *bench_memory(size_t bytes);                      /* or exits */
/* dlsym, or exits. */
void *bench_symbol(void *library, const char *name);
/* "# ..." lines of the environment variable GPB_BENCH_HEADER, then the columns. NULL if path is NULL. */
FILE *bench_csv(const char *path, const char *columns);

/* Entries of C = A B, column-major, drawn at random, and what FP64 says they are. */
enum { SAMPLES = 256 };
typedef struct sample {
    int64_t at[SAMPLES];                               /* i + j*m */
    gpb_reference_element exact[SAMPLES];
    float got[SAMPLES];
} sample;
typedef struct sample_error {
    double worst;                                      /* max |e| / |A||B| in units of 2^-24 */
    double frobenius;                                  /* relative, over the sample */
} sample_error;

void sample_draw(sample *s, int m, int n, int k, const float *a, const float *b);
sample_error sample_judge(const sample *s);

#endif
