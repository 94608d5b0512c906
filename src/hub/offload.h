/* SPDX-License-Identifier: MIT */
/* The hub that every GEMM door goes through. */
#ifndef GPB_OFFLOAD_H
#define GPB_OFFLOAD_H

#include <stdbool.h>

#include "dispatch/call.h"

/* A call on the host BLAS, from the time gpb_offload returns false to gpb_offload_done. */
typedef struct gpb_host_call {
    const gpb_call *call;        /* NULL: not counted or traced (an illegal call, or the host calling
                                    itself) */
    const char *why;
    double host_s, gpu_s;        /* predicted; 0: the size alone decided */
    double modelled_s;           /* host_s by the model alone, without what was learnt; 0: nothing is learnt
                                    from this call */
    bool leaves_core;            /* the host computes with a thread fewer, also while no GPU is started */
    double missed_s;             /* of the plan, and so are these */
    bool tries;
    int threads;                 /* that the prediction assumes for the host */
    double came_s;               /* when the call came; set only for the trace and the report */
    bool traps;                  /* the caller traps floating-point exceptions (src/service/traps.h) */
    uint64_t range;              /* of a profiler, which the end of the call ends; 0: none */
    double begin_s;              /* when the host began; set only if something is learnt from the call */
} gpb_host_call;

/* True: C is done. False: the caller must pass its own arguments to the host BLAS under the same name, then
   call gpb_offload_done. Illegal arguments and calls that the host makes to itself go to the host. */
bool gpb_offload(const gpb_call *call, gpb_host_call *record);
/* The host is computing a call of this thread's, and calls us. */
bool gpb_offload_is_inside(void);
/* True if the reference would compute or return without calling xerbla. */
bool gpb_offload_legal(const gpb_call *call);
void gpb_offload_done(const gpb_host_call *record);
/* A GEMM, SYRK or HERK of ours, for a part of a larger call: by the GPU or by the host's routine of that
   name. */
void gpb_offload_or_host(const gpb_call *call);

#endif
