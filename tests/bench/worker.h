/* SPDX-License-Identifier: MIT */
/* Contenders, each in a process of its own that opens one library and does what it is asked. The parent asks
   them by turns, so rivals are timed side by side and never at once. Questions and answers are structs of the
   mode, over pipes. */
#ifndef GPB_BENCH_WORKER_H
#define GPB_BENCH_WORKER_H

#include <stdio.h>
#include <sys/types.h>

#include "tests/bench/bench.h"
#include "tests/bench/host.h"

enum contender_id {
    GPUBLAS_AUTO, GPUBLAS_ALWAYS, GPUBLAS_NEVER, HOST, NVBLAS, NVBLAS_TUNED, COPY_CUBLAS, CONTENDERS
};
typedef struct contender {
    const char *name;
    const char *library;         /* NULL: not found on this machine */
    const char *offload;         /* GPUBLAS_OFFLOAD; NULL: not ours */
    bool nvblas, tuned;
} contender;
/* All of them; contenders_of(options)[id]. */
const contender *contenders_of(const bench_options *options);

/* What a process is given beside its library. 0, NULL: as it comes. */
typedef struct worker_setting {
    int threads;                 /* OPENBLAS_NUM_THREADS */
    int cores;                   /* of those this process may use, the first so many */
    const char *memory;          /* GPUBLAS_MEMORY */
    const char *watch;           /* a variable, GPUBLAS_REPORT, TRACE or VERBOSE; then stderr is /dev/null */
    const char *watched;         /* its value */
} worker_setting;

typedef struct worker {
    const contender *who;
    pid_t pid;                   /* 0: it has ended, with: */
    int code;
    FILE *asks, *answers;
    char configuration[32];      /* NVBLAS's, a temporary file */
} worker;

/* A contender that was not found gives a worker that has ended with 77. */
worker worker_start(const bench_options *options, const char *mode, enum contender_id id,
                    worker_setting setting);
/* False: the worker has ended without an answer. */
bool worker_ask(worker *w, const void *ask, size_t ask_size, void *answer, size_t answer_size);
void worker_end(worker *w);
/* Waits until the threads of the last one asked have gone to sleep. OpenBLAS's look for work after a call, on
   all cores. */
void worker_settle(void);
/* Is its end a fault? A rival may be missing or fail; ours and the host BLAS may not. */
bool worker_failed(const worker *w);

/* In the worker. */
typedef struct worker_mode {
    const char *name;
    size_t ask, answer;
    void (*serve)(const bench_options *options, const void *ask, void *answer);
} worker_mode;
extern const worker_mode end_to_end_mode, never_slower_mode, callers_mode, overhead_mode;

/* One call by this worker's contender, and its seconds. */
void contender_call(const gpb_call *g);
double contender_timed(const gpb_call *g);
/* Calls until the GPU has been used, for at most 3 s: `auto` wants to see that it will pay. Seconds of the
   very first call. */
double contender_warm(memory *from, enum gpb_type type, int n);
/* That call on the GPU, whatever GPUBLAS_OFFLOAD says: so it has been started. */
void contender_offload_one(const gpb_call *g);
bool contender_has_rows(void);   /* row-major calls: by C alone */
/* Our library's counters; 0 for the others. */
uint64_t contender_calls(void);
uint64_t contender_gpu_calls(void);

/* pinned.c: bytes of page-locked memory that this process has ever asked the driver for. */
size_t pinned_bytes(void);

/* copy.c: operands up, cuBLAS, C home, by the driver's own copies of pageable memory. */
void copy_open(void);            /* exits with 77 without a GPU or cuBLAS */
void copy_call(const gpb_call *g);

#endif
