/* SPDX-License-Identifier: MIT */
/* Predicted seconds: on the host, on the link (within a factor of two), in a kernel (tests/bench/fit.py says
   how accurate). Each takes tens of nanoseconds. */
#ifndef GPB_COST_H
#define GPB_COST_H

#include "dispatch/call.h"
#include "dispatch/facts.h"
#include "dispatch/generation.h"
#include "dispatch/streamk.h"

/* How fast a kernel is on a generation: a row TUNED of tuned.def. The row gives share, alone, load and store;
   here are their inverses, because a choice has no time for divisions. */
typedef struct gpb_tuned {
    enum gpb_kernel_row row;
    int arch;
    int blocks;                  /* blocks on a multiprocessor */
    double per_share, per_alone; /* 1 / share of a multiprocessor's FMA peak that the loop over k reaches:
                                    with all its blocks; with one block (not for SLICED kernels) */
    double tile_us;              /* the beginning and end of a tile */
    double fixed_us;             /* of a call, beyond all else */
    double join_us;              /* of a call whose k is cut, in addition */
    double per_load, per_store;  /* 1 / share of memory_gbs at which it reads A and B, and writes C, when
                                    nothing else limits it */
    double trans[2], misaligned; /* factors by which it is slower if op(A) is transposed; if op(B) is; if an
                                    operand's columns do not begin at multiples of 16 bytes (then the loop of
                                    a STRIDED kernel is slower, else the passes) */
    double misaligned_c;         /* the same for writing C */
} gpb_tuned;
#define GPB_TUNED(row, arch, blocks, share, alone, tile_us, fixed_us, join_us, load, store, ta, tb,     \
                  misaligned, misaligned_c)                                                             \
    { row, arch, blocks, 1 / (share), 1 / (alone), tile_us, fixed_us, join_us, 1 / (load), 1 / (store), \
      { ta, tb }, misaligned, misaligned_c }

/* The whole call by the host BLAS on all cores. */
double gpb_cost_host(const gpb_call *call, const gpb_facts *facts);
/* These bytes of an operand to the device or back, while the other direction is busy, too. */
double gpb_cost_link(double bytes, enum gpb_place place, bool up, const gpb_facts *facts);
/* The time until the first bytes of an operand are on the device, or from when its last bytes leave until
   they are home. */
double gpb_cost_reach(double bytes, enum gpb_place place);
/* The part of a call's cost on a GPU that is the same for all kernels. */
typedef struct gpb_case {
    const gpb_call *call;
    const gpb_facts *facts;
    double m, n, k, batch, sms;  /* k of both products if they are joined */
    double element;              /* bytes */
    double elements[GPB_OPERANDS];                  /* that go into C from op(A) and op(B), over all members;
                                                       of C those that are computed */
    double peak_s;               /* of one multiply-add of a multiprocessor */
    double byte_s, passed_s;     /* of one byte of memory; of one byte in a pass */
    double launch_s;             /* of one more kernel */
    bool misaligned[GPB_OPERANDS];                  /* on the device, and its columns do not begin at
                                                       multiples of 16 bytes */
    bool streamk;                /* Stream-K is allowed */
    bool triangle;               /* of a C on the device: kernels that can compute it alone do so */
} gpb_case;
gpb_case gpb_cost_case(const gpb_call *call, const gpb_facts *facts, const gpb_generation *gpu);

/* The cost of the case by one kernel, except what depends on the number of parts that k is cut into. */
typedef struct gpb_kernel_cost {
    const gpb_kernel *kernel;
    const gpb_tuned *tuned;
    double per_share, per_alone; /* tuned's, or more if tensor copies are slower than the loop */
    double tiles;                /* of C, over all members of a batch */
    double places;               /* blocks that the GPU holds at once */
    double per_place, per_sm;    /* its inverse; the inverse of the number of multiprocessors */
    double k_tiles;              /* k-tiles along k */
    double k_tile_s;             /* one k-tile of one tile of C at the FMA peak of a multiprocessor, with the
                                    operands stored as they are */
    double memory_s;             /* to move the least that must be moved */
    double other_s;              /* fixed costs, packing */
    double part_s, part_fixed_s; /* adding up partial sums: for each part; for any number of parts */
    gpb_streamk streamk;            /* if k is not cut */
} gpb_kernel_cost;
gpb_kernel_cost gpb_cost_kernel(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on);
/* Seconds with k cut into that many parts, packing included. The call's own fixed cost (call_s of the facts)
   is not. */
double gpb_cost_seconds(const gpb_kernel_cost *cost, int splits);
/* At most gpb_cost_seconds for any splits > 1. */
double gpb_cost_min_cut(const gpb_kernel_cost *cost);
/* At most gpb_cost_seconds for any splits. Needs no gpb_kernel_cost. */
double gpb_cost_min(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on);

#endif
