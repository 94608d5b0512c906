/* SPDX-License-Identifier: MIT */
/* What a decision may know. Filled by src/, written down by hand in tests: a GPU nobody here owns is a
   struct. */
#ifndef GPB_FACTS_H
#define GPB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"

/* PINNED: host memory that the driver knows as page-locked over the operand's whole extent, copied without
   staging. ELSEWHERE: memory of another GPU or another context, or a pointer array of several kinds. Managed
   memory is in place for kernels, and so DEVICE. */
enum gpb_place { GPB_PLACE_HOST, GPB_PLACE_PINNED, GPB_PLACE_DEVICE, GPB_PLACE_ELSEWHERE };

static inline bool gpb_place_on_host(enum gpb_place place)
{
    return place == GPB_PLACE_HOST || place == GPB_PLACE_PINNED;
}

/* The GPU: src/gpu/place.c writes it. */
typedef struct gpb_gpu {
    int arch;                    /* compute capability, major*10 + minor; 0: none to be had */
    int sms;
    int64_t bytes;               /* device memory this call may use */
} gpb_gpu;

/* What copies cost: src/learn/machine.c writes this and the next two. */
typedef struct gpb_link {
    double up_gbs, down_gbs;     /* ordinary host memory to the device and back, staged, each while both run;
                                    GB/s */
    double dma_gbs;              /* pinned host memory, either way, each while both run; GB/s */
    double call_s;               /* one call's fixed cost on the GPU, seconds */
} gpb_link;

typedef struct gpb_host {
    int cores;                   /* that the host BLAS uses */
    double core_gflops;          /* its SGEMM rate on one of them */
} gpb_host;

/* Measured / modelled seconds of calls like this one; 1: as modelled. */
typedef struct gpb_learnt {
    double host_ratio, gpu_ratio;
    bool crowded;                /* threads of the host BLAS hold the cores (src/copy/contention.h): gpu_ratio
                                    is of such calls, */
    double quiet_ratio;          /* this of others */
    bool try_host, try_gpu;      /* that side was never tried with this very size, which the other knows
                                    (learn.h) */
} gpb_learnt;

/* What is going on: src/hub/offload.c writes it. */
typedef struct gpb_now {
    int callers, host_callers;   /* other calls: on the GPU, as far as this one shares the link with them; on
                                    the host's threads */
    double start_s;              /* seconds until the GPU is started; 0 once it is */
    bool starting;               /* that is under way */
    double credit_s;             /* what the GPU would have saved on the calls so far that went to the host
                                    for start_s alone, */
    double age_s;                /* in so long a time: since the library was loaded */
} gpb_now;

/* Where an operand lives: src/gpu/place.c writes it. */
typedef struct gpb_where {
    enum gpb_place place;
    bool managed;                /* not on the host by `place`, but all of it within the host's reach */
    int64_t member_stride;       /* of an array of addresses: elements from a member to the next where all lie
                                    equally far apart in one allocation; else < 0 */
} gpb_where;

typedef struct gpb_facts {
    gpb_gpu gpu;
    gpb_link link;
    gpb_host host;
    gpb_learnt learnt;
    gpb_now now;
    gpb_where where[GPB_OPERANDS];
    int device;                  /* 1 + the index among our GPUs of the one they live on; 0: on none */
} gpb_facts;

static inline bool gpb_where_is(const gpb_facts *facts, enum gpb_operand x, enum gpb_place place)
{
    return facts->where[x].place == place;
}

/* True if the operand is where the host cannot reach it. */
static inline bool gpb_facts_unreachable(const gpb_facts *facts, enum gpb_operand x)
{
    return !gpb_place_on_host(facts->where[x].place) && !facts->where[x].managed;
}

/* True if C, or any operand, is. */
static inline bool gpb_facts_c_on_gpu(const gpb_facts *facts) { return gpb_facts_unreachable(facts, GPB_C); }

static inline bool gpb_facts_on_gpu(const gpb_facts *facts)
{
    return gpb_facts_c_on_gpu(facts) || gpb_facts_unreachable(facts, GPB_A)
           || gpb_facts_unreachable(facts, GPB_B);
}

static inline bool gpb_facts_managed(const gpb_facts *facts)
{
    return facts->where[GPB_A].managed || facts->where[GPB_B].managed || facts->where[GPB_C].managed;
}

/* Large calls take turns (src/gpu/lanes.h), so a small one has at most one of them beside it: from so many
   bytes that go through rings on. */
enum { GPB_LARGE_CALL = 16 << 20 };

static inline bool gpb_facts_large(const gpb_call *call, const gpb_facts *facts)
{
    double elements = 0;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        const enum gpb_place place = facts->where[x].place;
        if (place == GPB_PLACE_HOST || (x == GPB_C && place == GPB_PLACE_PINNED))
            elements += gpb_call_elements(call, x);
    }
    return (double)gpb_call_element(call) * elements > GPB_LARGE_CALL;
}

#endif
