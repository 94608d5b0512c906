/* SPDX-License-Identifier: MIT */
/* Predicted seconds: on the host, on the link (within a factor of two), in a kernel (tests/bench/fit.py says
   how far off). Cheap: tens of nanoseconds each. */
#ifndef GPB_COST_H
#define GPB_COST_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/generation.h"
#include "dispatch/streamk.h"

/* What a kernel is worth on a generation: a row TUNED of tuned.def, where it says share, alone, load and
   store instead of their inverses: a choice has no time for divisions. */
typedef struct gpb_tuned {
    enum gpb_kernel_row row;
    int arch;
    int blocks;                  /* that share a multiprocessor */
    double per_share, per_alone; /* 1 / share of the FMA peak of a multiprocessor in the loop over k: with all
                                    its blocks, with one (which SPLIT kernels do without) */
    double tile_us;              /* a tile's beginning and end */
    double fixed_us;             /* a call, beyond what the others cost */
    double join_us;              /* more, if k is cut */
    double per_load, per_store;  /* 1 / share of memory_gbs at which it reads A and B, and writes C, when
                                    nothing else holds it up */
    double trans[2], odd;        /* slower by, if op(A) is transposed; op(B); if an operand's columns do not
                                    begin at multiples of 16 bytes: the loop of a STRIDED kernel, else the
                                    passes */
    double odd_c;                /* the same for writing C */
} gpb_tuned;
#define GPB_TUNED(row, arch, blocks, share, alone, tile_us, fixed_us, join_us, load, store, ta, tb,        \
                  odd, odd_c)                                                                              \
    { row, arch, blocks, 1 / (share), 1 / (alone), tile_us, fixed_us, join_us, 1 / (load), 1 / (store), \
      { ta, tb }, odd, odd_c }

/* The call by the host BLAS on all cores. */
double gpb_cost_host(const gpb_call *call, const gpb_facts *facts);
/* So many bytes of an operand to the device or back, while the other direction is busy too. */
double gpb_cost_link(double bytes, enum gpb_place place, bool up, const gpb_facts *facts);
/* Until the first bytes of an operand are on the device, or from when its last ones leave until they are
   home. */
double gpb_cost_reach(double bytes, enum gpb_place place);
/* A call on a GPU, as every kernel's cost has it: worked out once for all of them. */
typedef struct gpb_case {
    const gpb_call *call;
    const gpb_facts *facts;
    double m, n, k, batch, sms;
    double element;              /* bytes */
    double elements[GPB_OPERANDS];                  /* over all members */
    double peak_s;               /* one FMA of a multiprocessor */
    double byte_s, passed_s;     /* one byte of memory; one of a pass */
    double launch_s;             /* one more kernel */
    bool misaligned[GPB_OPERANDS];                  /* on the device, and their columns do not begin at
                                                       multiples of 16 bytes */
    bool streamk;                /* kernels that can share out the k of their first tiles may */
} gpb_case;
gpb_case gpb_cost_case(const gpb_call *call, const gpb_facts *facts, const gpb_generation *gpu);

/* The case by one kernel: all that does not depend on the number of parts that k is cut into. */
typedef struct gpb_kernel_cost {
    const gpb_kernel *kernel;
    const gpb_tuned *tuned;
    double tiles;                /* of C, over all members of a batch */
    double places;               /* blocks that the GPU holds at once */
    double per_place, per_sm;    /* their inverse, and that of the multiprocessors */
    double slices;               /* of k */
    double slice_s;              /* one slice of one tile at the FMA peak of a multiprocessor, the operands
                                    lying as they do */
    double memory_s;             /* to move what must be moved at least */
    double other_s;              /* fixed costs, packing */
    double part_s, part_fixed_s; /* adding up parts: for each of them; whatever their number */
    gpb_streamk streamk;            /* with k whole */
} gpb_kernel_cost;
gpb_kernel_cost gpb_cost_kernel(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on);
/* Seconds with k in so many parts; packing included, the call's own fixed cost (facts' call_s) not. */
double gpb_cost_seconds(const gpb_kernel_cost *cost, int splits);
/* Not more than gpb_cost_seconds for any splits > 1. */
double gpb_cost_min_cut(const gpb_kernel_cost *cost);
/* Not more than gpb_cost_seconds for any splits; worked out without a gpb_kernel_cost. */
double gpb_cost_min(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on);

#endif
