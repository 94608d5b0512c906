/* SPDX-License-Identifier: MIT */
/* The internals of tests/fakecuda: a libcuda.so.1 whose devices are host memory. Not included outside this
   folder. Every entry point begins with gpb_fake_enter and ends with gpb_fake_leave, and holds one mutex
   between them. */
#ifndef GPB_FAKECUDA_H
#define GPB_FAKECUDA_H

/* The library is built with -fvisibility=hidden: only the names in cuda.h are exported. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/type.h"
#include "kernels/gemm_args.h"
#include "kernels/triangle.h"
#include "kernels/sliced.h"
#include "kernels/solve_args.h"

/* Clusters: not every SM finds partners in its group. */
enum { GPB_FAKE_DEVICES = 16, GPB_FAKE_SMS = 132, GPB_FAKE_CLUSTERS = 62 };

/* The environment, read once:
   FAKECUDA_SEED=1        seed of the order in which queued work runs
   FAKECUDA_MEMORY=1G     bytes of each device, with K, M or G
   FAKECUDA_ARCH=90       compute capability
   FAKECUDA_DEVICES=1     number of devices; if 0, or if CUDA_VISIBLE_DEVICES is empty, cuInit returns
                          CUDA_ERROR_NO_DEVICE
   FAKECUDA_MODE=0        compute mode: 0 default, 2 prohibited, 3 exclusive process
   FAKECUDA_START_MS=0    how long it takes to make a device's first primary context
   FAKECUDA_ENGINE=1      a thread in place of the GPU runs queued work beside the program; else it runs only
                          when a call waits
   FAKECUDA_DAWDLE=1      one call in four pauses before it returns, so that other threads' calls come between
   FAKECUDA_CAPTURE=1     another thread of the program is recording a graph (fake_capture.c)
   FAKECUDA_STALE=1       using a stream, event, module or function from before a reset ends the process; else
                          it is an error
   FAKECUDA_FAIL=rules    function:count:code, separated by commas: the count-th call of that function returns
                          code. count 17+: every call from the 17th on; *: every call. function "any": counts
                          the calls of all functions. After a sticky code (700, 719, ..., or any with ! after
                          it) every later call that needs a context returns it, too
   FAKECUDA_LEAVE=1       the end of the process unmaps large pinned memory, and dies if the GPU has work left
   FAKECUDA_WRONG=0       N: one in N copies to the host has one wrong number
   FAKECUDA_NO_IMAGE=1    cuModuleLoadData returns CUDA_ERROR_NO_BINARY_FOR_GPU
   FAKECUDA_NO_CLUSTERS=1 no cluster of thread blocks fits anywhere
   FAKECUDA_NETLIB=1      FMA kernels round as netlib's GEMM does, bit for bit; else each result of s and c is
                          rounded once, and those of d and z are chains of FMAs
   FAKECUDA_TENSOR=0      1: SLICED and TF32X3 kernels add as tensor cores do (fake_tensor.c), FMA kernels in
                          one chain of FMAs; 2, 4: the same, but sums leave the tensor cores every 2 or 4
                          chunks of 32 k, as where C is large
   FAKECUDA_LOG=file      appends a line "function thread=id result=code" for each call, and at exit a line
                          "kernel symbol launched=n ran=n" for each kernel
   FAKECUDA_SUMMARY=file  appends only those last lines */
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

/* fake_gate.c: entry and exit of calls, injected failures, the log */
CUresult gpb_fake_enter(const char *function, enum gpb_fake_need need);
CUresult gpb_fake_leave(const char *function, CUresult result);
const gpb_fake_options *gpb_fake_options_get(void);
uint64_t gpb_fake_random(uint64_t below);
bool gpb_fake_forked(void);              /* true in the child of a process that had called cuInit */
void gpb_fake_initialised(void);
bool gpb_fake_lost(void);                /* after a sticky error, so what is queued will never run */
/* The program broke a rule, and real hardware would do nothing or return garbage. Prints one line to stderr
   and ends the process with exit status 86. */
_Noreturn void gpb_fake_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fake_capture.c: calls that the program must not make while it records a graph. Each dies if it is recording
   one. */
void gpb_fake_check_capture(const char *function);
void gpb_fake_check_legacy(void);

/* fake_device.c: contexts */
struct CUctx_st {
    CUcontext next;
    int device, references;
    unsigned long long id;               /* a new number each time it comes to life */
    bool primary, alive;
    CUstream null_stream;
};
CUcontext gpb_fake_current(void);
/* Called when a handle from before a reset is used. With FAKECUDA_STALE it dies. */
void gpb_fake_stale(const char *what);
int gpb_fake_opt_in_bytes(void);         /* shared memory that a block may ask for */

/* fake_memory.c: allocations */
enum gpb_fake_place { GPB_FAKE_PLACE_DEVICE, GPB_FAKE_PLACE_PINNED, GPB_FAKE_PLACE_MANAGED };
typedef struct gpb_fake_block {
    CUdeviceptr start;
    size_t bytes;
    char *storage;                       /* the bytes themselves; equal to start except on the device */
    enum gpb_fake_place place;
    bool registered;                     /* the program's own memory, pinned */
    CUcontext context;
    uint64_t id;
    bool pooled;                         /* no context owns it */
} gpb_fake_block;
gpb_fake_block *gpb_fake_block_find(CUdeviceptr at);
bool gpb_fake_is_device_address(const void *at);
/* Where the bytes from at+low to at+high (exclusive) really are, as the real place of `at`. Dies unless they
   lie in one allocation that `device` may use. NULL for an empty range. */
void *gpb_fake_translate(int device, CUdeviceptr at, int64_t low, int64_t high, const char *who);
void gpb_fake_memory_release(CUcontext context);
/* Starts again with the first addresses, as far as they are free. */
void gpb_fake_memory_rewind(void);
void gpb_fake_memory_end(void);          /* pinned memory must not be used from here on */

/* fake_stream.c: queued work */
typedef struct gpb_fake_mark {           /* one recording of an event */
    int references;
    bool done;
    double seconds;                      /* when it was reached */
    CUstream stream;                     /* valid while not done */
    uint64_t number;
} gpb_fake_mark;

typedef struct gpb_fake_copy {           /* height rows of width bytes */
    bool to_device, from_device;         /* which addresses need translation */
    CUdeviceptr to, from;
    size_t to_pitch, from_pitch, width, height;
} gpb_fake_copy;

typedef struct gpb_fake_launch {
    CUfunction function;
    union {
        gpb_gemm_args gemm;
        gpb_mapped_args mapped;
        gpb_pack_args pack;
        gpb_unpack_args unpack;
        gpb_reduce_args reduce;
        gpb_slice_args slice;
        gpb_panel_args panel;
        gpb_cholesky_args cholesky;
        gpb_triangle_args triangle;
        gpb_multiply_args multiply;
        gpb_systems_args systems;
        gpb_swap_args swap;
        gpb_identity_args identity;
        gpb_digest_args digest;
        gpb_mirror_args mirror;
        gpb_trapezoid_args trapezoid;
        gpb_narrow_args narrow;
        gpb_correct_args correct;
        gpb_norm_args norm;
        gpb_judge_args judge;
        gpb_trsv_args trsv;
    } arguments;
} gpb_fake_launch;

enum gpb_fake_kind { GPB_FAKE_COPY, GPB_FAKE_SET, GPB_FAKE_LAUNCH, GPB_FAKE_RECORD, GPB_FAKE_WAIT };
typedef struct gpb_fake_op {
    struct gpb_fake_op *next;
    enum gpb_fake_kind kind;
    uint64_t number;                     /* order of issue, over all streams */
    gpb_fake_copy copy;                  /* SET: to, width, to_pitch, height */
    unsigned char value;                 /* SET */
    gpb_fake_launch *launch;             /* owned */
    gpb_fake_mark *mark;                 /* RECORD, WAIT */
    void *staged;                        /* owned: the driver's own copy of pageable memory */
} gpb_fake_op;

struct CUstream_st {
    CUstream next;
    CUcontext context;
    bool blocking, destroyed, dead;      /* blocking: ordered with the NULL stream; dead: made before a
                                            reset */
    gpb_fake_op *head, *tail;
    uint64_t limit;                      /* while work is being scheduled: operations up to this number must
                                            run */
};

struct CUevent_st {
    CUevent next;
    CUcontext context;
    bool timed, dead;
    gpb_fake_mark *mark;                 /* the latest recording, or NULL */
};

CUstream gpb_fake_stream_new(CUcontext context, bool blocking);
/* The stream of that handle, or NULL if there is none. NULL and CU_STREAM_LEGACY: the current context's
   own. */
CUstream gpb_fake_stream_find(CUstream handle);
gpb_fake_op *gpb_fake_push(CUstream stream, enum gpb_fake_kind kind);
extern CUstream gpb_fake_streams;
/* A reset: queued work never runs, and the handles become stale. */
void gpb_fake_stream_reset(CUcontext context);

/* fake_schedule.c: when queued work runs */
void gpb_fake_finish_stream(CUstream stream);
void gpb_fake_finish_mark(const gpb_fake_mark *mark);
void gpb_fake_finish_context(CUcontext context);
void gpb_fake_run_some(void);            /* runs a few operations, or none */
bool gpb_fake_run_next(void);            /* runs one; false: none is ready */
void gpb_fake_mark_release(gpb_fake_mark *mark);

/* fake_module.c: kernels by name */
enum gpb_fake_role {
    GPB_FAKE_GEMM, GPB_FAKE_PACK, GPB_FAKE_UNPACK, GPB_FAKE_REDUCE, GPB_FAKE_COMBINE, GPB_FAKE_SLICER,
#define SOLVE(name, arguments, threads, begins) GPB_FAKE_##name,
#include "kernels/solve.def"
#undef SOLVE
};
typedef struct gpb_fake_kernel {
    const char *symbol;
    enum gpb_fake_role role;
    enum gpb_type type;
    int image;                           /* its number in images.def */
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk, threads, smem;
    unsigned caps;
    int cluster, max_k;                 /* from slicer.def */
} gpb_fake_kernel;
struct CUfunc_st {
    const gpb_fake_kernel *kernel;
    CUcontext context;
    int dynamic_limit;
    bool big_clusters;                   /* of more than 8 blocks are allowed */
};
static inline bool gpb_fake_is_complex(const gpb_fake_kernel *kernel)
{
    return gpb_type_of(kernel->type)->kind == GPB_TYPE_COMPLEX;
}
void gpb_fake_launch_run(const gpb_fake_launch *launch);
void gpb_fake_kernels_summary(void (*line)(const char *format, ...));
void gpb_fake_module_release(CUcontext context);
void gpb_fake_module_reset(CUcontext context);

/* fake_element.c: elements, by type */
typedef struct gpb_fake_operand {        /* a matrix of any type */
    const void *at;
    int64_t rs, cs;
    bool conj;                           /* of complex types the conjugates count */
} gpb_fake_operand;
enum gpb_fake_rounding {
    GPB_FAKE_ONCE,                       /* sums in double, rounded once; of d and z the same as FMA */
    GPB_FAKE_TF32,                       /* the same after rounding operands to TF32 */
    GPB_FAKE_CHUNKS,                     /* sums of GPB_SLICE_CHUNK products are rounded and added in FP32 */
    GPB_FAKE_NETLIB,                     /* as the reference BLAS rounds */
    GPB_FAKE_FMA,                        /* a chain of FMAs, in increasing k */
    GPB_FAKE_TF32X3                      /* as kernels/sliced/direct.cuh rounds */
};
/* One member of a GEMM, with real addresses: no address in g is used. a and b are read only if k > 0. */
typedef struct gpb_fake_member {
    const gpb_gemm_args *g;
    enum gpb_type type;
    gpb_fake_operand a, b;
    void *c;
    enum gpb_fake_rounding rounding;
    bool raw;                            /* C = A B, without alpha and beta */
} gpb_fake_member;
/* Panels for fake_tile.h: of A of so many bytes of real rows, of B of so many columns; depth-major, the last
   filled up with zeros. A complex product is a real one of twice as many rows of A and twice the k. */
enum { GPB_FAKE_TILE_BYTES = 64, GPB_FAKE_TILE_COLUMNS = 4 };
typedef struct gpb_fake_packing {
    void *to;
    bool is_left;                        /* A. Else B, transposed */
    bool wide;                           /* to double */
    bool round;                          /* to TF32 before */
} gpb_fake_packing;
/* Parts of C that are added up: the first one, and the others `stride` elements from one to the next. */
typedef struct gpb_fake_parts {
    const void *first, *second;
    int64_t count, stride, ld, rows, columns;
    const double *alpha, *beta;
} gpb_fake_parts;
typedef struct gpb_fake_element {
    void (*netlib)(const gpb_fake_member *x);
    void (*pack)(const gpb_fake_packing *how, gpb_fake_operand from, int rows, int depth);
    /* sums: real numbers, ld of them to a column */
    void (*store)(const gpb_fake_member *x, const void *sums, int64_t ld, bool wide);
    void (*add_up)(const gpb_fake_parts *x, void *c, int64_t ldc);
    void (*copy)(const gpb_pack_args *g, const void *from, void *to);
    void (*unpack)(const gpb_unpack_args *g, const void *from, void *to);
} gpb_fake_element;
const gpb_fake_element *gpb_fake_element_of(enum gpb_type type);
/* How many of these bytes are zero before the first that is not. */
int64_t gpb_fake_zeros(const void *at, int64_t bytes);

/* fake_multiply.c: products */
void gpb_fake_multiply_member(const gpb_fake_member *x);
/* A rectangle of C, and a range of k. */
typedef struct gpb_fake_range {
    int64_t i, rows, j, columns, p, depth;
} gpb_fake_range;
/* That part of x. *g becomes its arguments. */
gpb_fake_member gpb_fake_within(const gpb_fake_member *x, const gpb_fake_range *range, gpb_gemm_args *g);
typedef struct gpb_fake_matrix {         /* of floats */
    const float *at;
    int64_t rs, cs;
} gpb_fake_matrix;
/* C = alpha A B + beta C of floats, with sizes and scalars from g. */
void gpb_fake_multiply(const gpb_gemm_args *g, gpb_fake_matrix a, gpb_fake_matrix b, float *c,
                       enum gpb_fake_rounding rounding);

/* fake_gemm.c: kernels */
/* True if a launch may write C(i,j). */
static inline bool gpb_fake_has(const gpb_gemm_args *g, int64_t i, int64_t j)
{
    return !g->uplo || (g->uplo == 'U' ? i <= j : i >= j);
}
/* Computes a part of C, or what of it lies in the launch's triangle. */
void gpb_fake_multiply_part(const gpb_fake_member *x, const gpb_fake_range *range);
/* Room for the products of a part of C, to be freed. */
void *gpb_fake_apart(const gpb_fake_member *x, const gpb_fake_range *range);
/* What of a part of C lies in the launch's triangle, from its products on, which have ld `rows`. */
void gpb_fake_keep_triangle(const gpb_fake_member *x, const gpb_fake_range *range, const void *products);
/* Where a rows x columns matrix with these strides really is. */
void *gpb_fake_matrix_at(int device, enum gpb_type type, CUdeviceptr at, int64_t rows, int64_t columns,
                         int64_t rs, int64_t cs, const char *who);
/* A batch's table of addresses, or NULL if it has none. */
const void *gpb_fake_table_at(int device, const void *table, int64_t bytes, const char *who);
/* Calls block(context, i, rows, j, columns) for each block of member l of C with guard words of its own that
   this kernel must compute. Rows of SLICED kernels are those of the real product (sliced.h). */
typedef void gpb_fake_block_do(void *context, int64_t i, int64_t rows, int64_t j, int64_t columns);
void gpb_fake_each_block(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int64_t l,
                         gpb_fake_block_do *block, void *context);
/* products 2: as in gpb_mapped_args. */
void gpb_fake_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int products);
/* The same of a MAPPED kernel (fake_map.c): its maps must describe the operands in its arguments. */
void gpb_fake_mapped(const gpb_fake_kernel *kernel, int device, const gpb_mapped_args *g);
void gpb_fake_pack(const gpb_fake_kernel *kernel, int device, const gpb_pack_args *g);
void gpb_fake_unpack(const gpb_fake_kernel *kernel, int device, const gpb_unpack_args *g);
void gpb_fake_reduce(const gpb_fake_kernel *kernel, int device, const gpb_reduce_args *g);

/* fake_residues.c: gpb_?residues, RESIDUES kernels, and gpb_?combine */
void gpb_fake_residues(const gpb_fake_kernel *kernel, int device, const gpb_slice_args *g);
void gpb_fake_residues_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
void gpb_fake_combine(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);

/* fake_tensor.c: sums as tensor cores form them. The numbers of a chunk of k, each as mantissa *
   2^exponent. */
typedef struct gpb_fake_terms {
    float mantissa[GPB_SLICE_CHUNK][GPB_GUARD];
    int32_t exponent[GPB_SLICE_CHUNK][GPB_GUARD];
} __attribute__((aligned(64))) gpb_fake_terms;
typedef float gpb_fake_sums[GPB_GUARD][GPB_GUARD];          /* one for each row of A and column of B */
typedef struct gpb_fake_cores {
    int terms, bits;                     /* products added at once, a multiple of 2; bits kept below the
                                            largest exponent */
} gpb_fake_cores;
/* Stores x at place p of the row. least: the smallest exponent of x's kind. |x| < 2^127. */
void gpb_fake_term(gpb_fake_terms *to, int p, int row, float x, int least);
/* to(i,j) += the products of row i of a and column j of b at how.terms places, starting at `from`. Columns
   are filled up to a multiple of 8. */
void gpb_fake_cores_add(gpb_fake_sums to, const gpb_fake_terms *a, const gpb_fake_terms *b, int from,
                        gpb_fake_cores how, int rows, int columns);

/* fake_direct.c: TF32X3 kernels. sums = op(A) op(B), of at most GPB_GUARD rows and columns. False: FMAs must
   compute these. */
bool gpb_fake_direct(gpb_fake_sums sums, int rows, int columns, int64_t k, gpb_fake_matrix a,
                     gpb_fake_matrix b);

/* fake_streamk.c: Stream-K */
void gpb_fake_streamk_check(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
void gpb_fake_streamk(const gpb_fake_kernel *kernel, int device, const gpb_fake_member *x, int64_t l);

/* fake_sliced.c: FP16 and BF16 slices */
void gpb_fake_slicer(const gpb_fake_kernel *kernel, int device, const gpb_slice_args *g);
void gpb_fake_sliced_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g);
typedef struct gpb_fake_sliced {         /* one member of an operand in slices */
    int64_t rows, k;
    bool two;                            /* op(A) of a complex product: two rows for each of its own */
    int slices;
    char *at;
} gpb_fake_sliced;
/* Rows of a tile of the real product. */
static inline int gpb_fake_sliced_bm(const gpb_fake_kernel *kernel)
{
    return (int)gpb_sliced_m(gpb_fake_is_complex(kernel), kernel->bm);
}
/* Eight elements of row i of a slice, from p on, a multiple of 8. */
void gpb_fake_slice(const gpb_fake_sliced *x, int64_t i, int64_t p, int slice, float to[8]);

/* fake_slices.c: the sums of a block of C as tensor cores form them, before they are scaled back. */
typedef struct gpb_fake_slices {
    const gpb_fake_kernel *kernel;
    int device;
    const gpb_gemm_args *g;
    int64_t member;
    const gpb_fake_sliced *a, *b;
} gpb_fake_slices;
void gpb_fake_slices_sum(const gpb_fake_slices *x, int64_t i0, int rows, int64_t j0, int columns,
                         gpb_fake_sums sums);

/* fake_solve.c: LAPACK's solvers. panel: of both kinds */
void gpb_fake_panel(const gpb_fake_kernel *kernel, int device, const gpb_panel_args *g);
void gpb_fake_cholesky(const gpb_fake_kernel *kernel, int device, const gpb_cholesky_args *g);
void gpb_fake_substitute(const gpb_fake_kernel *kernel, int device, const gpb_triangle_args *g);
void gpb_fake_triangles(const gpb_fake_kernel *kernel, int device, const gpb_multiply_args *g);
void gpb_fake_systems(const gpb_fake_kernel *kernel, int device, const gpb_systems_args *g);
void gpb_fake_swap(const gpb_fake_kernel *kernel, int device, const gpb_swap_args *g);
void gpb_fake_trsv(const gpb_fake_kernel *kernel, int device, const gpb_trsv_args *g);
void gpb_fake_identity(const gpb_fake_kernel *kernel, int device, const gpb_identity_args *g);
void gpb_fake_mirror(const gpb_fake_kernel *kernel, int device, const gpb_mirror_args *g);
void gpb_fake_trapezoid(const gpb_fake_kernel *kernel, int device, const gpb_trapezoid_args *g);
void gpb_fake_narrow(const gpb_fake_kernel *kernel, int device, const gpb_narrow_args *g);
void gpb_fake_correct(const gpb_fake_kernel *kernel, int device, const gpb_correct_args *g);
void gpb_fake_norm(const gpb_fake_kernel *kernel, int device, const gpb_norm_args *g);
void gpb_fake_judge(const gpb_fake_kernel *kernel, int device, const gpb_judge_args *g);
void gpb_fake_digest(const gpb_fake_kernel *kernel, int device, const gpb_digest_args *g);

#endif
