/* SPDX-License-Identifier: MIT */
/* The answer: decide.c fills it in, and the run carries it out. */
#ifndef GPB_PLAN_H
#define GPB_PLAN_H

#include "dispatch/kernel_table.h"
#include "dispatch/matrix.h"
#include "kernels/residues.h"
#include "kernels/sliced.h"

/* The most bytes in a column of a C that goes home to host memory. A column goes home in one chunk, so that
   it is committed at once. */
#define GPB_PLAN_LONGEST_COLUMN (2 << 20)
/* Slices lie at multiples of this many bytes (sliced.h). */
#define GPB_PLAN_ALIGNED 1024

/* How long calls wait for a start if nothing else limits it. Eight GPUs without persistence mode need half of
   it. If a start takes longer, calls go on without waiting until it is done. */
#define GPB_PLAN_MAX_START_S 30.0

/* What a plan says of one operand. */
typedef struct gpb_panels {
    int64_t extent;              /* of a panel: A: rows of op(A), B: columns of op(B). A block of C is A's
                                    extent by B's */
    int64_t strip;               /* A, B: how many of these come at a time */
    int buffers;                 /* 1 or 2 of equal size */
    bool packs;                  /* goes through gpb_spack (A and B of a guarded kernel through a slicer), or
                                    C through gpb_sunpack and a workspace */
    /* Arena. Of SYR2K and HER2K those of A and B are in two halves, because each side of the product has rows
       of both matrices: the first half is the operand's own, the other that of the second product. */
    int64_t bytes;               /* the panels as they come from the host; 0 if used in place */
    int64_t bytes_packed;        /* the padded workspace, or the slices; 0 if none */
    int64_t bytes_wide;          /* A and B: the slices of one strip for `wide` */
} gpb_panels;

/* A decision. On the GPU, C is computed in blocks, each from panels of A and B of depth kc, `group` batch
   members at a time. Extents and kc are the whole of m, n, k or multiples of 256. A panel of A comes in
   strips of rows of op(A), a panel of B in strips of columns of op(B). A strip is the whole extent or a
   multiple of 256 (the latter only if kc == k and batch == 1). schedule.h says in which order. An operand on
   the device is used in place. Each of the others has one or two buffers of a panel in the arena; with two,
   the next panel can come (or the last block go home) while one is in use.

   If k == 0 or alpha == 0, A and B have no buffers and no packs, and the kernel gets k = 0. The bytes below
   do not include the address tables of a pointer-array batch, 48 bytes a member and more
   (src/run/address_table.c). Each of the bytes is a multiple of 256, or for a guarded kernel of
   GPB_PLAN_ALIGNED, and that kernel's arena begins at such a multiple, too. */
typedef struct gpb_plan {
    bool gpu;
    bool waits;                  /* on the host because of start_s alone: host_s - gpu_s is added to the
                                    credit */
    bool starts;                 /* and with that the credit has paid for the start, so the GPU is started
                                    while the host computes */
    bool leaves_core;            /* a start is near, or begins: the host computes with a thread fewer */
    bool tries;                  /* this side is chosen because this size was not tried on it yet */
    double missed_s;             /* seconds the GPU would save without contention; 0 unless contention is what
                                    sent the call to the host */
    const char *why;             /* one phrase for the trace: "faster on the GPU", "too small",
                                    "GPUBLAS_OFFLOAD=never" ... */
    const gpb_kernel *kernel;
    gpb_panels panel[GPB_OPERANDS];
    int64_t kc, group;
    int triangle;                /* 'U', 'L': launches compute that triangle of C alone, in place; 0: blocks
                                    of C, of which some may lie outside the triangle */
    bool one_matrix;             /* A and B are one matrix that comes once, with the strips of the operand
                                    that leads (schedule.h), and B has no panel of its own. So it is with the
                                    two matrices of SYR2K */
    bool mirrors;                /* of a symmetric operand in the host's memory the stored triangle comes, in
                                    strips, and a kernel makes the mirror image: the panel is all of it,
                                    columns of gpb_plan_mirrored_ld. Else the crew mirrors it on its way */
    bool one_packed;             /* beside a guarded kernel: B's slices are A's, without room of their own */
    const gpb_kernel *fallback;  /* beside a guarded kernel: the STRIDED FMA kernel (bm, bn divide GPB_GUARD)
                                    that computes flagged blocks, and all of C if there is nothing to
                                    multiply; else NULL */
    const gpb_kernel *wide;      /* NULL, or beside a kernel of FP16 slices the SLICED kernel for blocks whose
                                    range is too wide for those (level 1 of gemm_args.h). Without it the
                                    fallback computes them */
    const gpb_slicer *slicer;    /* NULL, or beside a guarded kernel the one that slices panels of depth kc;
                                    for less deep panels it may be another one */
    int splits;                  /* split-K: the parts that each launch cuts k into, which gpb_sreduce adds
                                    up; 0, 1: not cut. Not for guarded kernels */
    bool streamk;                /* launches may use Stream-K where it pays (streamk.h) */
    int64_t bytes_parts;         /* arena: partial sums of split-K or Stream-K */
    int64_t bytes_mirrored;      /* arena, behind all else: all of a symmetric operand of which a triangle is
                                    on the device, columns of gpb_plan_mirrored_ld; 0: none is. The rest of
                                    the plan is of the product with that (gpb_call_whole) */
    bool in_turn;                /* SYR2K and HER2K of operands on the device: the second product is a run of
                                    its own, behind that of the first, of which the rest of the plan is */
    bool joined;                 /* the same in one launch: the plan is of gpb_call_joined */
    bool speculative;            /* beside a guarded kernel: tiles are computed without the fallback kernels
                                    until a block is flagged */
    bool crew;                   /* the crew copies; else the calling thread alone */
    bool past_caches;            /* C is stored past the caches */
    int64_t load_bytes;          /* at most in a chunk of C on its way home, unless a column has more */
    double host_s, gpu_s;        /* predicted seconds, start_s not counted */
    double usual_s;              /* if gpu: the same of the run with the link of an H200. Choices that show in
                                    the bits go by it, because the same call must give the same */
    double wait_s;               /* if gpu and the GPU is not started: the longest that the call waits, before
                                    it goes to the host */
} gpb_plan;

/* The leading dimension of a matrix that is mirrored on the device: columns begin at multiples of 256
   bytes. */
static inline int64_t gpb_plan_mirrored_ld(int64_t order, int64_t element)
{
    const int64_t elements = 256 / element;
    return (order + elements - 1) / elements * elements;
}

/* Bytes of the arena that the plan names. Address tables come in addition. */
static inline int64_t gpb_plan_bytes(const gpb_plan *plan)
{
    int64_t bytes = plan->bytes_parts + plan->bytes_mirrored;
    for (int x = 0; x < GPB_OPERANDS; x++)
        bytes += plan->panel[x].bytes + plan->panel[x].bytes_packed + plan->panel[x].bytes_wide;
    return bytes;
}

/* Number of slices that a SLICED kernel cuts an element into; of planes of a RESIDUES kernel. */
static inline int gpb_plan_slices(const gpb_kernel *kernel)
{
    if (kernel->form == GPB_FORM_RESIDUES) return gpb_residue_planes(gpb_type_is_complex(kernel->type));
    return kernel->math == GPB_MATH_BF16X6 ? 3 : kernel->math == GPB_MATH_FP16X3 ? 2 : 1;
}

/* True if a SLICED kernel computes a complex product as a real one (sliced.h). */
static inline bool gpb_plan_is_doubled(const gpb_kernel *kernel)
{
    return kernel->form == GPB_FORM_SLICED && gpb_type_is_complex(kernel->type);
}

/* What slices see of an operand: its rows and depth in the real product. */
static inline int64_t gpb_plan_sliced_rows(const gpb_kernel *kernel, enum gpb_operand x, int64_t rows)
{
    return gpb_sliced_m(x == GPB_A && gpb_plan_is_doubled(kernel), rows);
}
static inline int64_t gpb_plan_sliced_k(const gpb_kernel *kernel, int64_t k)
{
    return gpb_sliced_k(gpb_plan_is_doubled(kernel), k);
}

/* Bytes of one member of an operand after slicing for that kernel. */
static inline int64_t gpb_plan_sliced_bytes(const gpb_kernel *kernel, enum gpb_operand x, int64_t rows,
                                            int64_t k)
{
    if (kernel->form == GPB_FORM_RESIDUES)
        return gpb_residue_bytes(gpb_type_is_complex(kernel->type), x == GPB_A, rows, k);
    return gpb_sliced_bytes(gpb_plan_sliced_rows(kernel, x, rows), gpb_plan_sliced_k(kernel, k),
                            gpb_plan_slices(kernel));
}

/* Where its guard words lie, in bytes from its start; and how many they are. */
static inline int64_t gpb_plan_guard(const gpb_kernel *kernel, enum gpb_operand x, int64_t rows, int64_t k)
{
    if (kernel->form == GPB_FORM_RESIDUES)
        return gpb_residue_guard(gpb_type_is_complex(kernel->type), x == GPB_A, rows, k);
    return gpb_sliced_guard(gpb_plan_sliced_rows(kernel, x, rows), gpb_plan_sliced_k(kernel, k),
                            gpb_plan_slices(kernel));
}
static inline int64_t gpb_plan_guards(const gpb_kernel *kernel, enum gpb_operand x, int64_t rows)
{
    const int64_t each = x == GPB_A ? GPB_GUARD_ROWS(gpb_type_is_complex(kernel->type)) : GPB_GUARD;
    return (rows + each - 1) / each;
}

/* Bytes from one strip of a panel to the next in the arena, as strips come from the host: `group` members of
   size x depth elements. */
static inline int64_t gpb_plan_strip_bytes(int64_t size, int64_t depth, int64_t group, size_t element)
{
    return ((int64_t)element * size * depth * group + 255) / 256 * 256;
}

#endif
