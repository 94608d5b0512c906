/* SPDX-License-Identifier: MIT */
/* libgpublas's own API: eight functions. A program needs none of them, because it uses the library through
   the names of BLAS. */
#ifndef GPUBLAS_H
#define GPUBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUBLAS_VERSION "0.1.0"

/* What the library has done in this process so far. Sizes are in bytes, times in seconds. */
typedef struct gpublas_stats_t {
    uint64_t calls;           /* legal calls with something to compute that the library received. TRSM, TRMM
                                 and LAPACK's solvers, where they do not stay on the GPU, are one for each of
                                 their products, a batch is one for each run of groups that are alike */
    uint64_t gpu_calls;       /* of these, computed on the GPU */
    uint64_t host_calls;      /* of these, computed by the host BLAS, wholly or in part */
    uint64_t failed_calls;    /* of these, begun on the GPU and finished by the host BLAS after a failure
                                 (also in host_calls) */
    uint64_t bytes_to_gpu, bytes_from_gpu;
    double gpu_seconds;       /* wall time of gpu_calls, summed over threads */
    double gpu_flops;         /* floating-point operations, summed over gpu_calls: 2 m n k a product, 8 m n k
                                 if it is complex, half of that for a triangle */
    uint64_t wrong_calls;     /* found wrong by GPUBLAS_VERIFY and computed again by the host */
    /* The next three are those of the report, and are counted only while GPUBLAS_REPORT is on: a call on the
       host, which may take 0.1 us, is not timed for them otherwise. */
    double host_seconds;      /* that callers waited for calls that went to the host, summed over threads */
    double saved_seconds;     /* the host's predicted time less what the caller waited, summed over calls on
                                 the GPU for which there is a prediction; below 0: lost */
    double missed_seconds;    /* that the GPU was predicted to save on calls that the host computed */
} gpublas_stats_t;

/* The version of the library that runs, as text: "0.1.0". */
const char *gpublas_version(void);

/* Copies the counters to *stats: `size` bytes of them, which should be the caller's sizeof(gpublas_stats_t).
   Returns 0, or -1 if stats is NULL. */
int gpublas_stats(gpublas_stats_t *stats, size_t size);

/* Sets an option by its name, with or without "GPUBLAS_", in any case: gpublas_set_option("KERNEL", "naive").
   A value of NULL restores the default. The change holds for calls that begin later. HOST_BLAS, DEVICES and
   MEMORY have an effect only before the first use of the host BLAS, of a GPU or of its memory. Returns 0, or
   -1 for an unknown name or a bad value; then nothing has changed. */
int gpublas_set_option(const char *name, const char *value);

/* Copies the option's value as text to value, at most size - 1 characters and a final zero. Returns the
   value's length, or -1 for an unknown name. */
int gpublas_get_option(const char *name, char *value, size_t size);

/* Asks what would become of calls. From gpublas_ask(answer, size) to gpublas_ask(NULL, 0) this thread's calls
   of the routines below compute nothing and touch no operand; INFO becomes 0. Instead `answer` becomes a JSON
   array with an object for each product that such a call is: where it would go once the GPU is started, why,
   and the seconds that the host and the GPU are predicted to take (include/README.md, Predictions). The
   first call starts and measures the GPU. The last one returns the length of the whole text, of which
   size - 1 characters are there; -1: size is 0.
   Routines: those of src/host/arguments.def, which are gemm, gemmtr, gemm3m, symm, hemm, syrk, herk, syr2k,
   her2k, trsm, trmm, getrf, getrs, gesv, potrf, potrs, posv, getri, potri, lauum, trtri, trtrs, gecon and
   pocon, in their types, and dsgesv, zcgesv, dsposv and zcposv; gemmt, getrf2 and potrf2, answered as their
   likes; and batches, an object for each run of groups that are alike. Other routines, and calls with an
   illegal argument, compute or report as usual. */
int gpublas_ask(char *answer, size_t size);

/* Saves what was measured and learnt of this machine for the next process, in the file of
   GPUBLAS_CALIBRATION. Returns 0, or -1 if there is none, or nothing to save. */
int gpublas_save_calibration(void);

/* Writes a page on what the library sees to a file descriptor: a verdict, the driver, the GPUs, the host
   BLAS, options and kernels. It is the output of ./libgpublas.so --all. */
void gpublas_report(int fd);

/* Writes the report of the calls so far, which is written at the end of the program as well, to a file
   descriptor: where they went, why, what that took in seconds, moved in bytes and saved in seconds. json 0: a
   table, for people; else one object of JSON and a newline, in the form that include/README.md describes.
   Calls are counted for it while GPUBLAS_REPORT is on: gpublas_set_option("REPORT", "1") turns it on,
   gpublas_set_option("REPORT", "0") off, and off before the end there is none at the end. Any thread may call
   it; calls that end meanwhile are in it or not. Not for signal handlers, because it allocates. A forked
   child begins at zero. Returns 0, or -1 with errno: ENODATA, the report is off and has counted nothing;
   ENOMEM; or what write(2) says, when the descriptor may have a part of it. */
int gpublas_report_calls(int fd, int json);

#ifdef __cplusplus
}
#endif
#endif
