/* SPDX-License-Identifier: MIT */
/* The inside of tests/fakecuda: a libcuda.so.1 made of host memory. Never included outside this folder.
   Every entry point begins with gpb_fake_enter and ends with gpb_fake_leave: between the two, one mutex is held. */
#ifndef GPB_FAKECUDA_H
#define GPB_FAKECUDA_H

#pragma GCC visibility push(default)     /* the library is built with -fvisibility=hidden: only cuda.h's names leave it */
#include <cuda.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/gemm_args.h"
#include "kernels/names.h"
#include "kernels/split.h"

enum { GPB_FAKE_DEVICES = 16, GPB_FAKE_SMS = 132, GPB_FAKE_CLUSTERS = 62 };   /* clusters: not every SM finds partners in its group */

/* The environment, read once:
   FAKECUDA_SEED=1        of the order in which queued work runs
   FAKECUDA_MEMORY=1G     bytes of each device, with K, M or G
   FAKECUDA_ARCH=90       compute capability
   FAKECUDA_DEVICES=1     how many; 0 (and an empty CUDA_VISIBLE_DEVICES): cuInit returns CUDA_ERROR_NO_DEVICE
   FAKECUDA_MODE=0        compute mode: 0 default, 2 prohibited, 3 exclusive process
   FAKECUDA_START_MS=0    how long it takes to make a device's first primary context
   FAKECUDA_ENGINE=1      a thread in the place of the GPU runs what is queued, beside the program, and not only when a call waits
   FAKECUDA_DAWDLE=1      one call in four rests before it returns, so that other threads' calls come between a thread's
   FAKECUDA_CAPTURE=1     another thread of the program is recording a graph (fake_capture.c)
   FAKECUDA_STALE=1       whoever uses a stream, an event, a module or a function of before a reset dies; else it is an error
   FAKECUDA_FAIL=rules    function:count:code, separated by commas: the count-th call of that function (17+: from there on;
                          *: every call; function "any": of all calls) returns code; after a sticky code (700, 719, ..., or
                          with a ! after it) so does every later call that needs a context
   FAKECUDA_LEAVE=1       the end of the process unmaps large pinned memory, and dies if the GPU has work left to do
   FAKECUDA_WRONG=0       one in so many copies to the host has one wrong float
   FAKECUDA_NO_IMAGE=1    cuModuleLoadData returns CUDA_ERROR_NO_BINARY_FOR_GPU
   FAKECUDA_NO_CLUSTERS=1 no cluster of thread blocks fits anywhere
   FAKECUDA_NETLIB=1      FP32 kernels round as netlib's SGEMM does, bit for bit, instead of once a result
   FAKECUDA_TENSOR=0      1: SPLIT and TF32X3 kernels add up as tensor cores do (fake_tensor.c), FFMA kernels in one chain of FMAs; 2, 4: the
                          same, but sums leave the tensor cores every so many chunks of 32 k, as where C is large
   FAKECUDA_LOG=file      appends "function thread=id result=code" a call, and at exit "kernel symbol launched=n ran=n" a kernel
   FAKECUDA_SUMMARY=file  appends those last lines only */
typedef struct gpb_fake_options {
    uint64_t seed, memory;
    int arch, devices, mode, start_ms, wrong, tensor;
    bool no_image, no_clusters;
    bool netlib;
    bool engine;
    bool dawdle;
    bool capture;
    bool stale;
    bool leave;
} gpb_fake_options;

/* What a call needs before it may begin. */
enum gpb_fake_need { GPB_FAKE_NEED_NOTHING, GPB_FAKE_NEED_INIT, GPB_FAKE_NEED_CONTEXT };

/* fake_gate.c: the way in and out, injected failures, the log */
CUresult gpb_fake_enter(const char *function, enum gpb_fake_need need);
CUresult gpb_fake_leave(const char *function, CUresult result);
const gpb_fake_options *gpb_fake_options_get(void);
uint64_t gpb_fake_random(uint64_t below);
bool gpb_fake_forked(void);              /* true in the child of a process that had called cuInit */
void gpb_fake_initialised(void);
bool gpb_fake_lost(void);                /* after a sticky error: what is queued will never run */
/* The program broke a rule that real hardware would punish with silence or garbage: one line to stderr, exit status 86. */
_Noreturn void gpb_fake_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fake_capture.c: what must not be done while the program records a graph; each dies if it is recording one */
void gpb_fake_check_capture(const char *function);
void gpb_fake_check_legacy(void);

/* fake_device.c: contexts */
struct CUctx_st {
    CUcontext next;
    int device, references;
    unsigned long long id;               /* another one each time that it comes to life */
    bool primary, alive;
    CUstream null_stream;
};
CUcontext gpb_fake_current(void);
/* What was made before a reset is no handle any more; FAKECUDA_STALE: dies. */
void gpb_fake_stale(const char *what);
int gpb_fake_opt_in_bytes(void);         /* shared memory that a block may ask for */

/* fake_memory.c: allocations */
enum gpb_fake_place { GPB_FAKE_PLACE_DEVICE, GPB_FAKE_PLACE_PINNED, GPB_FAKE_PLACE_MANAGED };
typedef struct gpb_fake_block {
    CUdeviceptr start;
    size_t bytes;
    char *storage;                       /* the bytes themselves; equal to start unless on the device */
    enum gpb_fake_place place;
    bool registered;                     /* the program's own memory, pinned */
    CUcontext context;
    uint64_t id;
} gpb_fake_block;
gpb_fake_block *gpb_fake_block_find(CUdeviceptr at);
bool gpb_fake_is_device_address(const void *at);
/* Where the bytes from at+low to at+high (exclusive) really are, returned as the place of `at`; dies unless one allocation
   that `device` may use holds them all. NULL for an empty range. */
void *gpb_fake_translate(int device, CUdeviceptr at, int64_t low, int64_t high, const char *who);
void gpb_fake_memory_release(CUcontext context);
/* The next addresses are the first ones again, as far as they are free. */
void gpb_fake_memory_rewind(void);
void gpb_fake_memory_end(void);          /* whoever uses pinned memory from here on is punished */

/* fake_stream.c: what is queued */
typedef struct gpb_fake_mark {           /* one recording of an event */
    int references;
    bool done;
    double seconds;                      /* when it was done */
    CUstream stream;                     /* valid while not done */
    uint64_t number;
} gpb_fake_mark;

typedef struct gpb_fake_copy {           /* height rows of width bytes */
    bool to_device, from_device;         /* which of the two addresses need translation */
    CUdeviceptr to, from;
    size_t to_pitch, from_pitch, width, height;
} gpb_fake_copy;

typedef struct gpb_fake_launch {
    CUfunction function;
    union {
        gpb_gemm_args gemm;
        gpb_pack_args pack;
        gpb_unpack_args unpack;
        gpb_reduce_args reduce;
        gpb_split_args split;
    } arguments;
} gpb_fake_launch;

enum gpb_fake_kind { GPB_FAKE_COPY, GPB_FAKE_SET, GPB_FAKE_LAUNCH, GPB_FAKE_RECORD, GPB_FAKE_WAIT };
typedef struct gpb_fake_op {
    struct gpb_fake_op *next;
    enum gpb_fake_kind kind;
    uint64_t number;                     /* order of issue, over all streams */
    gpb_fake_copy copy;                  /* GPB_FAKE_SET: to, width */
    unsigned char value;                 /* GPB_FAKE_SET */
    gpb_fake_launch *launch;             /* owned */
    gpb_fake_mark *mark;                 /* RECORD, WAIT */
    void *staged;                        /* owned: the driver's own copy of pageable memory */
} gpb_fake_op;

struct CUstream_st {
    CUstream next;
    CUcontext context;
    bool blocking, destroyed, dead;      /* blocking: ordered with the NULL stream; dead: of before a reset */
    gpb_fake_op *head, *tail;
    uint64_t limit;                      /* of the schedule at work: operations up to this number are wanted */
};

struct CUevent_st {
    CUevent next;
    CUcontext context;
    bool timed, dead;
    gpb_fake_mark *mark;                 /* the latest recording, or NULL */
};

CUstream gpb_fake_stream_new(CUcontext context, bool blocking);
/* The stream of that handle (NULL and CU_STREAM_LEGACY: the current context's own), or NULL if there is none such. */
CUstream gpb_fake_stream_find(CUstream handle);
gpb_fake_op *gpb_fake_push(CUstream stream, enum gpb_fake_kind kind);
extern CUstream gpb_fake_streams;
/* A reset: what was queued never runs, and the handles are stale. */
void gpb_fake_stream_reset(CUcontext context);

/* fake_schedule.c: when it runs */
void gpb_fake_finish_stream(CUstream stream);
void gpb_fake_finish_mark(const gpb_fake_mark *mark);
void gpb_fake_finish_context(CUcontext context);
void gpb_fake_run_some(void);            /* a few operations, or none */
bool gpb_fake_run_next(void);            /* one; false: none is ready */
void gpb_fake_mark_release(gpb_fake_mark *mark);

/* fake_module.c: kernels by name */
enum gpb_fake_role { GPB_FAKE_GEMM, GPB_FAKE_PACK, GPB_FAKE_UNPACK, GPB_FAKE_REDUCE, GPB_FAKE_SPLIT };
typedef struct gpb_fake_kernel {
    const char *symbol;
    enum gpb_fake_role role;
    int image;                           /* of images.def */
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk, threads, smem;
    int sharers, most_k;                 /* split.def's */
} gpb_fake_kernel;
struct CUfunc_st {
    const gpb_fake_kernel *kernel;
    CUcontext context;
    int dynamic_limit;
};
void gpb_fake_launch_run(const gpb_fake_launch *launch);
void gpb_fake_kernels_summary(void (*line)(const char *format, ...));
void gpb_fake_module_release(CUcontext context);
void gpb_fake_module_reset(CUcontext context);

/* fake_gemm.c: what they compute */
typedef struct gpb_fake_matrix {
    const float *at;
    int64_t rs, cs;
} gpb_fake_matrix;
enum gpb_fake_rounding {
    GPB_FAKE_ONCE,                       /* sums in double, rounded once */
    GPB_FAKE_TF32,                       /* the same of operands rounded to TF32 */
    GPB_FAKE_CHUNKS,                     /* sums of GPB_SPLIT_CHUNK products are rounded, and added up in FP32 */
    GPB_FAKE_NETLIB,                     /* as the reference BLAS does */
    GPB_FAKE_FMA,                        /* a chain of FMAs, in increasing k */
    GPB_FAKE_TF32X3                      /* as kernels/split/direct.cuh does */
};
/* C = alpha A B + beta C, sizes and scalars as in g; no address of g is looked at, a and b are read only if k > 0. */
void gpb_fake_multiply(const gpb_gemm_args *g, gpb_fake_matrix a, gpb_fake_matrix b, float *c, enum gpb_fake_rounding rounding);
/* Where a rows x columns matrix of floats with these strides really is. */
float *gpb_fake_matrix_at(int device, CUdeviceptr at, int64_t rows, int64_t columns, int64_t rs, int64_t cs, const char *who);
/* One member of a GEMM, translated. */
typedef struct gpb_fake_member {
    const gpb_gemm_args *g;
    gpb_fake_matrix a, b;
    float *c;
    enum gpb_fake_rounding rounding;
} gpb_fake_member;
/* A batch's table of addresses, or NULL if it has none. */
const void *gpb_fake_table_at(int device, const void *table, int64_t bytes, const char *who);
/* Calls block(context, i, rows, j, columns) for each GPB_GUARD x GPB_GUARD block of member l of C that this kernel computes. */
typedef void gpb_fake_block_do(void *context, int64_t i, int64_t rows, int64_t j, int64_t columns);
void gpb_fake_each_block(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int64_t l, gpb_fake_block_do *block,
                         void *context);
void gpb_fake_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
void gpb_fake_pack(int device, const gpb_pack_args *g);
void gpb_fake_unpack(int device, const gpb_unpack_args *g);
void gpb_fake_reduce(int device, const gpb_reduce_args *g);

/* fake_tensor.c: what tensor cores do. Numbers of a chunk of k, as they go in: each is mantissa * 2^exponent. */
typedef struct gpb_fake_terms {
    float mantissa[GPB_SPLIT_CHUNK][GPB_GUARD];
    int32_t exponent[GPB_SPLIT_CHUNK][GPB_GUARD];
} __attribute__((aligned(64))) gpb_fake_terms;
typedef float gpb_fake_sums[GPB_GUARD][GPB_GUARD];          /* of a row of A and a column of B */
typedef struct gpb_fake_cores {
    int terms, bits;                     /* products that are added at once, a multiple of 2; bits that are kept below the largest's exponent */
} gpb_fake_cores;
/* x in place p, row; least: the smallest exponent that its kind has. |x| < 2^127. */
void gpb_fake_term(gpb_fake_terms *to, int p, int row, float x, int least);
/* to(i,j) = to(i,j) + the products of how.terms places, from `from` on, of row i of a and column j of b. (Columns are filled up to 8.) */
void gpb_fake_cores_add(gpb_fake_sums to, const gpb_fake_terms *a, const gpb_fake_terms *b, int from, gpb_fake_cores how, int rows, int columns);

/* fake_direct.c: TF32X3 kernels. sums = op(A) op(B), of no more than GPB_GUARD rows and columns; false: these are for FMAs. */
bool gpb_fake_direct(gpb_fake_sums sums, int rows, int columns, int64_t k, gpb_fake_matrix a, gpb_fake_matrix b);

/* fake_share.c: k of the first tiles shared out */
void gpb_fake_share_check(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
void gpb_fake_share(const gpb_fake_kernel *kernel, int device, const gpb_fake_member *x, int64_t l);

/* fake_split.c: FP16 and BF16 slices */
void gpb_fake_split(const gpb_fake_kernel *kernel, int device, const gpb_split_args *g);
void gpb_fake_split_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
typedef struct gpb_fake_sliced {         /* one member of an operand in the SPLIT form */
    int64_t rows, k;
    int slices;
    char *at;
} gpb_fake_sliced;
float gpb_fake_slice(const gpb_fake_sliced *x, int64_t i, int64_t p, int slice);

/* fake_slices.c: the sums of a block of C, before they are scaled back, as the tensor cores have them. */
typedef struct gpb_fake_slices {
    const gpb_fake_kernel *kernel;
    int device;
    const gpb_gemm_args *g;
    int64_t member;
    const gpb_fake_sliced *a, *b;
} gpb_fake_slices;
void gpb_fake_slices_sum(const gpb_fake_slices *x, int64_t i0, int rows, int64_t j0, int columns, gpb_fake_sums sums);

#endif
