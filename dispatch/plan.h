/* SPDX-License-Identifier: MIT */
/* The answer: what decide.c fills in, and the run carries out. */
#ifndef GPB_PLAN_H
#define GPB_PLAN_H

#include "dispatch/kernel_table.h"
#include "dispatch/matrix.h"

/* The most bytes of a column of C that goes home to host memory: a column goes home in one load, to be
   committed at once. */
#define GPB_PLAN_LONGEST_COLUMN (2 << 20)
/* Where slices may lie: at multiples of so many bytes (split.h). */
#define GPB_PLAN_ALIGNED 1024

/* What calls wait for a start if nothing else limits it: eight GPUs without persistence mode need half of it.
   Nobody waits for one that takes longer, until it is there. */
#define GPB_PLAN_MAX_START_S 30.0

/* What a plan says of one operand. */
typedef struct gpb_panels {
    int64_t extent;              /* of a panel: A: rows of op(A), B: columns of op(B). A block of C has A's by
                                    B's */
    int64_t strip;               /* A, B: so many of these come at a time */
    int buffers;                 /* 1 or 2 panels, of equal size */
    bool packs;                  /* through gpb_spack (A and B: gpb_ssplit for a SPLIT kernel), or gpb_sunpack
                                    and a workspace */
    int64_t bytes;               /* arena: the panels as they come from the host; 0 if used in place */
    int64_t bytes_packed;        /* arena: the padded workspace, or what gpb_ssplit makes; 0 if none */
    int64_t bytes_wide;          /* arena, A and B: what gpb_ssplit makes of one strip for `wide` */
} gpb_panels;

/* A decision. On the GPU, C is computed in blocks, each from panels of A and B that are kc deep, `group`
   batch members at a time. Extents and kc are the whole of m, n, k or multiples of 256. A panel of A comes in
   strips of rows of op(A), one of B in strips of columns of op(B): the whole extent, or multiples of 256
   (only if kc == k and batch == 1). The order of all this is schedule.h's. An operand on the device is read
   or written in place; the others have a buffer of one panel each in the arena, or of two, so that the next
   can come (or the last go home) while one is at work. If k == 0 or alpha == 0, A and B have no buffers and
   no packs, and the kernel is given k = 0. Beside the bytes, the device memory has room for the address
   tables of a pointer-array batch (src/run/operand.c): 48 bytes a member and more. Each of the bytes is a
   multiple of 256; of GPB_PLAN_ALIGNED for a SPLIT kernel, whose arena is begun at one, too. */
typedef struct gpb_plan {
    bool gpu;
    bool waits;                  /* on the host for start_s alone: host_s - gpu_s is to be added to the
                                    credit */
    bool starts;                 /* with that, the credit has paid for the start: the GPU is to be started
                                    while the host computes */
    bool tries;                  /* this side was not tried yet with this size: that is why */
    double missed_s;             /* so much quicker than the host the GPU would be, were the process not
                                    crowded; 0 if that is not what decides */
    const char *why;             /* one phrase for the trace: "faster on the GPU", "too small",
                                    "GPUBLAS_OFFLOAD=never" ... */
    const gpb_kernel *kernel;
    gpb_panels panel[GPB_OPERANDS];
    int64_t kc, group;
    const gpb_kernel *fallback;  /* beside a SPLIT kernel: the STRIDED FFMA kernel (bm, bn divide GPB_GUARD)
                                    that computes guarded blocks, and all of C if there is nothing to
                                    multiply; else NULL */
    const gpb_kernel *wide;      /* NULL, or beside a kernel of FP16 slices the SPLIT kernel that computes
                                    blocks whose rows reach too far for these (level 1 of gemm_args.h);
                                    without it the stand-in does */
    const gpb_slicer *slicer;    /* NULL, or beside a SPLIT kernel what makes slices of panels kc deep;
                                    shallower ones may have another */
    int splits;                  /* parts that each launch cuts its k into, for gpb_sreduce to add up; 0, 1:
                                    none. Not for SPLIT kernels */
    bool streamk;                /* launches share out the k of their first tiles where it pays (streamk.h) */
    int64_t bytes_parts;         /* arena: partial sums of k cut or shared out */
    bool speculative;            /* beside a SPLIT kernel: tiles are computed without the kernels for flagged
                                    blocks, until one is flagged */
    bool crew;                   /* the crew copies; else the conductor alone */
    bool past_caches;            /* C is stored past the caches */
    int64_t load_bytes;          /* of a load of C on its way home, at most, but for a column of more */
    double host_s, gpu_s;        /* predicted seconds, start_s not counted */
    double wait_s;               /* if gpu and the GPU is not started: the call waits so long at most, then it
                                    is the host's */
} gpb_plan;

/* What of the arena the plan names; beside it come address tables. */
static inline int64_t gpb_plan_bytes(const gpb_plan *plan)
{
    int64_t bytes = plan->bytes_parts;
    for (int x = 0; x < GPB_OPERANDS; x++)
        bytes += plan->panel[x].bytes + plan->panel[x].bytes_packed + plan->panel[x].bytes_wide;
    return bytes;
}

/* Slices that a SPLIT kernel has an element cut into. */
static inline int gpb_plan_slices(const gpb_kernel *kernel)
{
    return kernel->math == GPB_MATH_BF16X6 ? 3 : kernel->math == GPB_MATH_FP16X3 ? 2 : 1;
}

/* From one strip of a panel to the next in the arena, as they come from the host: `group` members of size x
   depth elements. */
static inline int64_t gpb_plan_strip_bytes(int64_t size, int64_t depth, int64_t group, size_t element)
{
    return ((int64_t)element * size * depth * group + 255) / 256 * 256;
}

#endif
