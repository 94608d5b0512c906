/* SPDX-License-Identifier: MIT */
/* The answer: what decide.c fills in, and the run carries out. */
#ifndef GPB_PLAN_H
#define GPB_PLAN_H

#include "dispatch/kernel_table.h"

/* The most rows of a tile of C that goes home to host memory: a column goes home in one load, to be
   committed at once. */
#define GPB_LONGEST_COLUMN 524288
/* Where slices may lie: at multiples of so many bytes (split.h). */
#define GPB_PLAN_ALIGNED 1024

/* What calls wait for a start if nothing else limits it: eight GPUs without persistence mode need half of it. Nobody waits for one that takes
   longer, until it is there. */
#define GPB_PLAN_MAX_START_S 30.0

/* A decision. On the GPU, C is computed in tiles of mc x nc, each from panels kc deep, `group` batch members at a time.
   mc, nc, kc are the whole of m, n, k or multiples of 256. A panel of A comes in strips of sm rows of op(A), one of B in strips of sn
   columns of op(B): the whole of mc and nc, or multiples of 256 (only if kc == k and batch == 1). The order of all this is schedule.h's.
   An operand on the device is read or written in place; the others have a buffer of one panel each in the arena, or of two, so that the
   next can come (or the last go home) while one is at work. If k == 0 or alpha == 0, A and B have no buffers and no packs, and the kernel
   is given k = 0.
   Beside the bytes, device_bytes has room for the address tables of a pointer-array batch (run/operand.c): 48 bytes a member and more. */
typedef struct gpb_plan {
    bool gpu;
    bool waits;                  /* on the host for start_s alone: host_s - gpu_s is to be added to the credit */
    bool starts;                 /* with that, the credit has paid for the start: the GPU is to be started while the host computes */
    bool tries;                  /* this side was not tried yet with this size: that is why */
    double missed_s;             /* so much quicker than the host the GPU would be, were the process not crowded; 0 if that is not what decides */
    const char *why;             /* one phrase for the trace: "faster on the GPU", "too small", "GPUBLAS_OFFLOAD=never" ... */
    const gpb_kernel *kernel;
    int64_t mc, nc, kc, group;
    int64_t sm, sn;
    const gpb_kernel *fallback;  /* beside a SPLIT kernel: the STRIDED FFMA kernel (bm, bn divide GPB_GUARD) that computes guarded blocks,
                                    and all of C if there is nothing to multiply; else NULL */
    const gpb_kernel *wide;      /* NULL, or beside a kernel of FP16 slices the SPLIT kernel that computes blocks whose rows reach too far
                                    for these (level 1 of gemm_args.h); without it the stand-in does */
    int splits;                  /* parts that each launch cuts its k into, for gpb_sreduce to add up; 0, 1: none. Not for SPLIT kernels */
    bool shares;                 /* with bytes_parts: each launch may share out the k of its first tiles (streamk.h says whether it does) */
    bool pack_a, pack_b, pack_c; /* through gpb_spack (both: gpb_ssplit for a SPLIT kernel) / gpb_sunpack and a padded workspace */
    int buffers_a, buffers_b, buffers_c;   /* 1 or 2 panels, of equal size: */
    int64_t bytes_a, bytes_b, bytes_c;     /* arena: the panels as they come from the host; 0 if used in place */
    int64_t bytes_pa, bytes_pb, bytes_pc;  /* arena: padded workspaces, or what gpb_ssplit makes; 0 if none */
    int64_t bytes_wa, bytes_wb;            /* arena: what gpb_ssplit makes of one strip for `wide` */
    int64_t bytes_parts;                   /* arena: partial sums of k cut or shared out. Each of these is a multiple of 256; of
                                              GPB_PLAN_ALIGNED for a SPLIT kernel, whose arena is begun at one, too */
    double host_s, gpu_s;        /* predicted seconds, start_s not counted */
    double wait_s;               /* if gpu and the GPU is not started: the call waits so long at most, then it is the host's */
} gpb_plan;

/* What of the arena the plan names; beside it come address tables. */
static inline int64_t gpb_plan_bytes(const gpb_plan *plan)
{
    return plan->bytes_a + plan->bytes_b + plan->bytes_c + plan->bytes_pa + plan->bytes_pb + plan->bytes_pc + plan->bytes_wa
           + plan->bytes_wb + plan->bytes_parts;
}

/* Slices that a SPLIT kernel has an element cut into. */
static inline int gpb_plan_slices(const gpb_kernel *kernel)
{
    return kernel->math == GPB_MATH_BF16X6 ? 3 : kernel->math == GPB_MATH_FP16X3 ? 2 : 1;
}

/* From one strip of a panel to the next in the arena, as they come from the host: `group` members of size x depth elements. */
static inline int64_t gpb_plan_strip_bytes(int64_t size, int64_t depth, int64_t group)
{
    return (4 * size * depth * group + 255) / 256 * 256;
}

#endif
