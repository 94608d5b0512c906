/* SPDX-License-Identifier: MIT */
/* What the benches on a GPU share: the driver, cuBLAS, our library's exported names, and operands. The driver
   and cuBLAS are opened by dlopen, and cuBLAS may be missing, because it is only a reference. Operands are
   stretches of device memory that hold a pattern of normal random numbers. */
#ifndef GPB_BENCH_GPU_H
#define GPB_BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/gpublas.h"
#include "kernels/names.h"
#include "tests/cblas.h"
#include "tests/problem.h"

typedef unsigned long long gpu_address;

extern struct gpu_driver {
    int (*cuInit)(unsigned);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetName)(char *, int, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuMemAlloc_v2)(gpu_address *, size_t);
    int (*cuMemFree_v2)(gpu_address);
    int (*cuMemHostAlloc)(void **, size_t, unsigned);
    int (*cuMemcpyHtoD_v2)(gpu_address, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, gpu_address, size_t);
    int (*cuMemcpy2DAsync_v2)(const void *, void *);           /* a CUDA_MEMCPY2D */
    int (*cuStreamSynchronize)(void *);
    int (*cuEventCreate)(void **, unsigned);
    int (*cuEventRecord)(void *, void *);
    int (*cuEventSynchronize)(void *);
    int (*cuEventElapsedTime)(float *, void *, void *); /* the software libcuda of the tests has none: NULL */
    int (*cuDeviceGetPCIBusId)(char *, int, int);             /* or NULL */
    int arch, sms, l2;                                        /* of the device: 90, multiprocessors, bytes */
} cuda;

/* cuBLAS's routines of one type. op: 0 N, 1 T, 2 C; uplo: 0 L, 1 U. alpha and beta are on the host. rank_k:
   SYRK, or HERK of complex types. */
typedef struct gpu_cublas_type {
    int (*one)(void *, int, int, int, int, int, const void *, const void *, int, const void *, int,
               const void *, void *, int);
    int (*strided)(void *, int, int, int, int, int, const void *, const void *, int, long long, const void *,
                   int, long long, const void *, void *, int, long long, int);
    int (*batched)(void *, int, int, int, int, int, const void *, const void *const *, int,
                   const void *const *, int, const void *, void *const *, int, int);
    int (*rank_k)(void *, int, int, int, int, const void *, const void *, int, const void *, void *, int);
} gpu_cublas_type;

/* math: 0 default, 3 TF32. handle: NULL without cuBLAS. */
extern struct gpu_cublas {
    void *handle;
    int (*create)(void **);
    int (*set_math)(void *, int);
    gpu_cublas_type of[GPB_TYPES];
} cublas;

/* sgemm, sgemm_batch, sgemm_batch_strided and so on. */
extern struct gpu_ours {
#define TYPE(letter, type, bytes, flops, kind)                         \
    void (*letter##gemm)(CBLAS_GEMM(type, kind));                      \
    void (*letter##gemm_batch)(CBLAS_GEMM_BATCH(type, kind));          \
    void (*letter##gemm_batch_strided)(CBLAS_GEMM_BATCH_STRIDED(type, kind));
#include "dispatch/type.def"
#undef TYPE
    void (*ssyrk)(CBLAS_SYRK(float, REAL)), (*dsyrk)(CBLAS_SYRK(double, REAL));
    void (*cherk)(GPB_CBLAS_SYRK_PARAMS(void, float, int));
    void (*zherk)(GPB_CBLAS_SYRK_PARAMS(void, double, int));
    int (*set_option)(const char *, const char *);
    int (*stats)(gpublas_stats_t *, size_t);
} ours;

/* must() on a call of the driver. */
#define MUST(call) must(cuda.call, #call)

/* The driver and device 0, whose primary context becomes current. False, with the reason on stderr, if there
   is no GPU. */
bool gpu_open(char *name, int size);
void gpu_open_cublas(void);
/* Our library: every call goes to the GPU from now on. */
void gpu_open_ours(const char *path);
void gpu_option(const char *name, const char *value);         /* or exits */
uint64_t gpu_calls(void);                                     /* of our library, on the GPU, so far */

/* The rows of the kernel table, with what a bench needs of them. */
typedef struct gpu_kernel {
    const char *name;
    enum gpb_type type;
    int step;
    const char *image;
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk;
} gpu_kernel;
extern const gpu_kernel gpu_kernels[];
extern const int gpu_kernel_count;
bool gpu_runs(const gpu_kernel *kernel);                      /* on this device */

/* A problem (tests/problem.h) on the device: column-major, members of a batch side by side. */
typedef struct gpu_problem {
    const char *suite;
    gpb_problem of;
    bool shuffled;                                            /* a batch by arrays of pointers, in no order */
    double beta;
    const struct data_kind *data;                             /* what A and B hold; NULL: the pattern */
} gpu_problem;

/* Other data: see data.c. */
typedef struct data_kind {
    const char *name;
    float (*a)(size_t, int, int, int), (*b)(size_t, int, int, int);
} data_kind;
extern const data_kind data_kinds[];
extern const int data_kind_count;
const char *data_name(const data_kind *kind);                 /* "normal": the pattern */
void data_fill(const gpu_problem *p, bool is_b, float *to);   /* all of op(A) or op(B) as it lies in memory */

double gpu_flops(const gpu_problem *p);
/* Sets of operands to go round: more than three times what the level-2 cache holds. */
size_t gpu_sets(const gpu_problem *p);
/* The problems of some suites of --device. */
struct bench_options;
const gpu_problem *device_problems(const struct bench_options *options, int *count);
/* Device memory for the largest of some problems, A and B filled with the pattern. */
void gpu_operands(const gpu_problem *all, int count);
/* To be called before a problem's first call. If its data are not the pattern, they are put there. */
void gpu_prepare(const gpu_problem *p);
/* Real numbers in an element: 1, or 2 of complex types. */
int gpu_parts(const gpu_problem *p);
/* Of the first set of operands: elements of op(A) and op(B) of a member, part by part, and where a column of
   C begins. */
void gpu_element_a(const gpu_problem *p, int member, int i, int q, double to[2]);
void gpu_element_b(const gpu_problem *p, int member, int q, int j, double to[2]);
gpu_address gpu_place_c(const gpu_problem *p, int member, int column);

enum gpu_who { GPU_OURS, GPU_CUBLAS };
/* One call on that set of operands; ours is complete when it returns, cuBLAS's is not. */
void gpu_multiply(enum gpu_who who, const gpu_problem *p, size_t set);
/* Seconds of one completed call by the host's clock; by events if `events` (cuBLAS alone). */
double gpu_timed(enum gpu_who who, const gpu_problem *p, size_t set, bool events);
/* |e| / (|A||B|) in units of 2^-24, or 2^-53 of d and z, over some entries, a complex one part by part: the
   largest, and root mean square (of a triangle without its diagonal). NaN: wrong altogether. */
typedef struct gpu_error { double worst, rms; } gpu_error;
/* Chooses entries of C and finds what they should be. The next functions use them. */
void gpu_truth(const gpu_problem *p);
int gpu_truth_entries(void);                                  /* of the root mean square */
gpu_error gpu_truth_chain(const gpu_problem *p);              /* of one chain of the type's FMAs */
gpu_error gpu_judged(enum gpu_who who,
                     const gpu_problem *p); /* of one call; the entries are poisoned before */
/* What our library says in its trace about one call: the kernel, and "/splits" if it cut k. */
const char *gpu_choice(const gpu_problem *p, char *text, size_t size);

#endif
