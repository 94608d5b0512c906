/* SPDX-License-Identifier: MIT */
/* What the benches share: their options, the clock, medians, CSV, and the error of a sample against FP64. */
#ifndef GPB_BENCH_H
#define GPB_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/problem.h"

typedef struct bench_options {
    const char *library;        /* libgpublas.so */
    const char *host_blas;      /* host memory: the host BLAS to compare with, and that ours falls back to */
    const char *plain_blas; /* the BLAS behind NVBLAS, which knows only plain names with 32-bit integers */
    const char *nvblas;         /* libnvblas.so; NULL: looked for, "": none */
    const char *csv;            /* where to write the CSV, or NULL */
    const char *only;           /* ladder: this kernel alone, or NULL */
    const char *suites, *modes; /* device: names with commas between them, NULL: all; fit: of suites, NULL:
                                   random shapes */
    const char *types;          /* device, fit, host memory: letters with commas between them */
    const char *pairs;          /* device: transpositions, such as NN,TN; NULL: all */
    int least;                  /* device: calls of each contender at least, however long they take */
    double sustained;           /* device: seconds on end for each contender on a square */
    double seconds;             /* ladder: once they have passed, every kernel is timed once per shape; the
                                   others: all of it, about */
    int shapes, seed;           /* fit, never-slower: how many random shapes at most; which ones */
    int largest;                /* shapes with a side above this are left out, or cut down */
    const char *worker, *contender;      /* a child: of that mode, for that contender */
    const char *program;        /* a child of --processes: be that program */
} bench_options;

/* Exit codes: 0, or 1 if an answer was wrong or a call did not run where it should have. 77: no GPU. */
int bench_ladder(const bench_options *options);
int bench_device(const bench_options *options);
int bench_fit(const bench_options *options);
int bench_end_to_end(const bench_options *options);
int bench_out_of_core(const bench_options *options);
int bench_never_slower(const bench_options *options);
int bench_processes(const bench_options *options);
int bench_callers(const bench_options *options);
int bench_overhead(const bench_options *options);
/* Children of these. */
int bench_worker(const bench_options *options);
int bench_program(const bench_options *options);

typedef struct spread { double median, least, most; int count; } spread;

double seconds_now(void);
spread spread_of(double *values, int count);           /* sorts them */
/* Exits if result is not 0. */
void must(int result, const char *what);
void *bench_memory(size_t bytes);                      /* or exits */
/* dlsym, or exits. */
void *bench_symbol(void *library, const char *name);
/* True if the name is one of the list's, which has commas between them, or if there is no list. */
bool bench_listed(const char *list, const char *name);
bool bench_has_type(const bench_options *options, enum gpb_type type);
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

/* Floating-point operations of an SGEMM of that size. */
double sgemm_flops(int m, int n, int k);

#endif
