/* SPDX-License-Identifier: MIT */
/* What a decision may know. src/ fills it in; tests write it by hand, so a GPU that nobody here owns is just
   a struct. */
#ifndef GPB_FACTS_H
#define GPB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "dispatch/start.h"

/* PINNED: host memory that the driver knows as page-locked over the operand's whole extent; it is copied
   without staging. ELSEWHERE: memory of another GPU or another context, or a pointer array of several kinds.
   DEVICE includes managed memory, because kernels use it in place. */
enum gpb_place { GPB_PLACE_HOST, GPB_PLACE_PINNED, GPB_PLACE_DEVICE, GPB_PLACE_ELSEWHERE };

static inline bool gpb_place_on_host(enum gpb_place place)
{
    return place == GPB_PLACE_HOST || place == GPB_PLACE_PINNED;
}

/* The GPU. Written by src/gpu/place.c. */
typedef struct gpb_gpu {
    int arch;                    /* compute capability, major*10 + minor; 0: no GPU can be had */
    int sms;
    int64_t bytes;               /* device memory that this call may use */
    bool no_maps;                /* MAPPED kernels cannot be had: the driver is older than tensor maps, or no
                                    cluster fits */
    bool queued;                 /* the launch is one of many that a routine queues (run/resident.c) */
    bool no_residues;            /* RESIDUES kernels would leave most of C to others (src/hub/sample.c) */
} gpb_gpu;

/* What copies cost. src/learn/machine.c writes this and the next two. */
typedef struct gpb_link {
    double up_gbs, down_gbs;     /* between ordinary host memory and the device, staged, each while both run;
                                    GB/s */
    double dma_gbs;              /* pinned host memory, either direction, each while both run; GB/s */
    double call_s;               /* one call's fixed cost on the GPU, seconds */
} gpb_link;

typedef struct gpb_host {
    int cores;                   /* that the host BLAS uses */
    double core_gflops;          /* its SGEMM rate on one core; gpb_facts_core_gflops has other types */
} gpb_host;

/* Measured / modelled seconds of calls like this one; 1: as modelled. */
typedef struct gpb_learnt {
    double host_ratio, gpu_ratio;
    bool contended;              /* other threads hold the cores (src/copy/contention.h), and
                                    gpu_ratio is of calls under contention */
    double quiet_ratio;          /* gpu_ratio of other calls */
    bool try_host, try_gpu;      /* that side was never tried with this size, and the other side knows it
                                    (learn.h) */
} gpb_learnt;

/* What is going on now. Written by src/hub. */
typedef struct gpb_now {
    int callers, host_callers;   /* other calls on the GPU, as far as this one shares the link with them;
                                    other calls on the host's threads */
    double start_s;              /* seconds until the GPU is started; 0 once it is */
    bool starting;               /* a start is in progress */
    double credit_s;             /* what the GPU would have saved so far on calls that went to the host
                                    because of start_s alone */
    double start_cost_s;         /* what starting the GPU costs the program: the host's work lost meanwhile,
                                    and time at the program's end */
    gpb_history history;         /* earlier runs of this program */
} gpb_now;

/* Where an operand lives. Written by src/gpu/place.c. */
typedef struct gpb_where {
    enum gpb_place place;
    bool managed;                /* `place` is not on the host, but the host can reach all of it */
    int64_t member_stride;       /* of a pointer array: elements from a member to the next if all lie equally
                                    far apart in one allocation; else < 0 */
} gpb_where;

typedef struct gpb_facts {
    gpb_gpu gpu;
    gpb_link link;
    gpb_host host;
    gpb_learnt learnt;
    gpb_now now;
    gpb_where where[GPB_OPERANDS];
    int device;                  /* 1 + the index among our GPUs of the GPU that they live on; 0: on none */
} gpb_facts;

static inline bool gpb_where_is(const gpb_facts *facts, enum gpb_operand x, enum gpb_place place)
{
    return facts->where[x].place == place;
}

/* True if the host cannot reach the operand. */
static inline bool gpb_facts_unreachable(const gpb_facts *facts, enum gpb_operand x)
{
    return !gpb_place_on_host(facts->where[x].place) && !facts->where[x].managed;
}

/* True if the host cannot reach C; any operand. */
static inline bool gpb_facts_c_on_gpu(const gpb_facts *facts) { return gpb_facts_unreachable(facts, GPB_C); }

static inline bool gpb_facts_on_gpu(const gpb_facts *facts)
{
    return gpb_facts_c_on_gpu(facts) || gpb_facts_unreachable(facts, GPB_A)
           || gpb_facts_unreachable(facts, GPB_B);
}

/* The GEMM rate of one core in that type, from its SGEMM rate. A vector register holds half as many doubles
   as floats, and complex products are made of real ones (type.def counts their operations). */
static inline double gpb_facts_core_gflops(const gpb_facts *facts, enum gpb_type type)
{
    const double single = (double)gpb_type_real_bytes(GPB_TYPE_s);
    return facts->host.core_gflops * single / (double)gpb_type_real_bytes(type);
}

static inline bool gpb_facts_managed(const gpb_facts *facts)
{
    return facts->where[GPB_A].managed || facts->where[GPB_B].managed || facts->where[GPB_C].managed;
}

/* From this many bytes through the rings on, a call is large. Large calls take turns (src/gpu/lanes.h), so a
   small call has at most one of them beside it. */
enum { GPB_LARGE_CALL = 16 << 20 };

static inline bool gpb_facts_large(const gpb_call *call, const gpb_facts *facts)
{
    double elements = 0;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        const enum gpb_place place = facts->where[x].place;
        if (x == GPB_B && gpb_call_one_matrix(call)) continue;
        if (place == GPB_PLACE_HOST || (x == GPB_C && place == GPB_PLACE_PINNED))
            elements += gpb_call_elements(call, x);
    }
    return (double)gpb_call_element(call) * elements > GPB_LARGE_CALL;
}

#endif
