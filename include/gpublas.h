/* SPDX-License-Identifier: MIT */
/* libgpublas's own API: five functions. Nobody needs them: the library is used through BLAS's names. */
#ifndef GPUBLAS_H
#define GPUBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUBLAS_VERSION "0.1.0"

/* What the library has done in this process so far. */
typedef struct gpublas_stats_t {
    uint64_t calls;           /* legal GEMM calls with something to compute that came through our doors */
    uint64_t gpu_calls;       /* of these, computed on the GPU */
    uint64_t host_calls;      /* of these, computed by the host BLAS, wholly or in part */
    uint64_t failed_calls;    /* begun on the GPU, finished by the host BLAS after a failure (also counted in host_calls) */
    uint64_t bytes_to_gpu, bytes_from_gpu;
    double gpu_seconds;       /* wall time of gpu_calls, summed over threads */
    double gpu_flops;         /* 2 m n k for each member (half for a triangle), summed over gpu_calls */
    uint64_t wrong_calls;     /* found wrong by GPUBLAS_VERIFY, and computed anew by the host */
} gpublas_stats_t;

/* The version of the library that runs, as text: "0.1.0". */
const char *gpublas_version(void);

/* Writes at most `size` bytes (sizeof(gpublas_stats_t) of the caller) of the counters to *stats. Returns 0, or -1 if stats is NULL. */
int gpublas_stats(gpublas_stats_t *stats, size_t size);

/* Sets an option by its name with or without "GPUBLAS_", in any case, for the calls that begin from now on: gpublas_set_option("KERNEL", "naive").
   value NULL: back to the default. HOST_BLAS, DEVICES and MEMORY take effect only before the first use of what they steer.
   Returns 0, or -1 for an unknown name or a bad value, leaving the option as it was. */
int gpublas_set_option(const char *name, const char *value);

/* Copies the option's value as text into value[size], always terminated. Returns its length, or -1 for an unknown name. */
int gpublas_get_option(const char *name, char *value, size_t size);

/* Writes a page on what the library sees (verdict, driver, GPUs, host BLAS, options, kernels) to a file descriptor: what
   ./libgpublas.so --all prints. */
void gpublas_report(int fd);

#ifdef __cplusplus
}
#endif
#endif
