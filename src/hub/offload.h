/* SPDX-License-Identifier: MIT */
/* The hub that every GEMM door goes through. */
#ifndef GPB_OFFLOAD_H
#define GPB_OFFLOAD_H

#include <stdbool.h>

#include "dispatch/call.h"

/* One visit of a call to the host BLAS, from gpb_offload's false to gpb_offload_done. */
typedef struct gpb_host_call {
    const gpb_call *call;        /* NULL: not to be counted or traced (an illegal call, or the host calling itself) */
    const char *why;
    double host_s, gpu_s;        /* as predicted; 0: the call's size told enough */
    double modelled_s;           /* host_s as the model has it, without what was learnt; 0: nothing is to be learnt from this call */
    int threads;                 /* of the host, in the prediction */
    double came_s;               /* set only when traced: when the call came */
    double begin_s;              /* set only when it is to be learnt from: when the host began */
} gpb_host_call;

/* True: C is done. False: hand the caller's own arguments to the host BLAS, under the same name, then call gpb_offload_done.
   Illegal arguments and calls that the host makes to itself are the host's. */
bool gpb_offload(const gpb_call *call, gpb_host_call *visit);
/* True if the reference would compute it, or return, without calling xerbla. */
bool gpb_offload_legal(const gpb_call *call);
void gpb_offload_done(const gpb_host_call *visit);

#endif
