/* SPDX-License-Identifier: MIT */
/* What a decision may know. Filled by src/, written down by hand in tests: a GPU nobody here owns is a struct. */
#ifndef GPB_FACTS_H
#define GPB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"

/* PINNED: host memory that the driver knows as page-locked over the operand's whole extent, copied without staging. ELSEWHERE: memory of
   another GPU or another context, or a pointer array of several kinds. Managed memory is in place for kernels, and so DEVICE, but the host
   reaches it as well: `managed_a`, ... say that of the operand. */
enum gpb_place { GPB_PLACE_HOST, GPB_PLACE_PINNED, GPB_PLACE_DEVICE, GPB_PLACE_ELSEWHERE };

static inline bool gpb_place_on_host(enum gpb_place place) { return place == GPB_PLACE_HOST || place == GPB_PLACE_PINNED; }

typedef struct gpb_facts {
    /* the GPU */
    int arch;                    /* compute capability, major*10 + minor; 0: none to be had */
    int sms;
    int64_t device_bytes;        /* device memory this call may use */
    double up_gbs, down_gbs;     /* ordinary host memory to the device and back, staged, each while both run; GB/s */
    double dma_gbs;              /* pinned host memory, either way, each while both run; GB/s */
    double call_s;               /* one call's fixed cost on the GPU, seconds */
    double gpu_ratio;            /* measured / modelled seconds of calls like this one on the GPU; 1: as modelled */
    bool crowded;                /* threads of the host BLAS hold the cores (src/copy/contention.h): gpu_ratio is of such calls, */
    double quiet_ratio;          /* this of others */
    int callers, host_callers;   /* other calls now: on the GPU, as far as this one shares the link with them; on the host's threads */
    bool try_host, try_gpu;      /* that side was never tried with this very size, which the other knows (learn.h) */
    double start_s;              /* seconds until the GPU is started; 0 once it is */
    bool starting;               /* that is under way */
    double credit_s;             /* what the GPU would have saved on the calls so far that went to the host for start_s alone, */
    double age_s;                /* in so long a time: since the library was loaded */
    /* the host */
    int cores;                   /* that the host BLAS uses */
    double core_gflops;          /* its SGEMM rate on one of them */
    double host_ratio;           /* measured / modelled seconds of calls like this one; 1: as modelled */
    /* the operands */
    enum gpb_place a, b, c;
    bool managed_a, managed_b, managed_c;         /* not on the host by the above, but all of it within its reach */
    int64_t between_a, between_b, between_c;      /* of an array of addresses: elements from a member to the next where all lie equally far apart
                                                     in one allocation; else < 0 */
    int device;                  /* 1 + the index among our GPUs of the one they live on; 0: on none */
} gpb_facts;

/* True if C, or any operand, is where the host cannot reach it. */
static inline bool gpb_facts_c_on_gpu(const gpb_facts *facts) { return !gpb_place_on_host(facts->c) && !facts->managed_c; }

static inline bool gpb_facts_on_gpu(const gpb_facts *facts)
{
    return gpb_facts_c_on_gpu(facts) || (!gpb_place_on_host(facts->a) && !facts->managed_a)
           || (!gpb_place_on_host(facts->b) && !facts->managed_b);
}

static inline bool gpb_facts_managed(const gpb_facts *facts) { return facts->managed_a || facts->managed_b || facts->managed_c; }

/* Large calls take turns (src/gpu/lanes.h), so a small one has at most one of them beside it: from so many bytes that go
   through rings on. */
enum { GPB_LARGE_CALL = 16 << 20 };

static inline bool gpb_facts_large(const gpb_call *call, const gpb_facts *facts)
{
    const double m = (double)call->m, n = (double)call->n, k = gpb_call_multiplies(call) ? (double)call->k : 0;
    const double elements = (facts->a == GPB_PLACE_HOST ? m * k : 0) + (facts->b == GPB_PLACE_HOST ? k * n : 0)
                            + (gpb_place_on_host(facts->c) ? m * n : 0);
    return 4 * elements * (double)call->batch > GPB_LARGE_CALL;
}

#endif
