/* SPDX-License-Identifier: MIT */
/* What a decision may know. Filled by src/, written down by hand in tests: a GPU nobody here owns is a struct. */
#ifndef GPB_FACTS_H
#define GPB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum gpb_place { GPB_PLACE_HOST, GPB_PLACE_DEVICE, GPB_PLACE_ELSEWHERE };   /* ELSEWHERE: memory of another GPU */

typedef struct gpb_facts {
    /* the GPU */
    int arch;                    /* compute capability, major*10 + minor; 0: none to be had */
    int sms;
    int64_t device_bytes;        /* device memory this call may use */
    double link_gbs;             /* host memory to device and back, as staged, GB/s */
    double launch_s;             /* one call's fixed cost on the GPU, seconds */
    double start_s;              /* what starting the GPU still costs, seconds; 0 once it is started */
    double credit_s;             /* what the GPU would have saved on the calls so far that went to the host for start_s alone */
    /* the host */
    int cores;                   /* this process may use */
    double core_gflops;          /* the host BLAS's SGEMM rate on one core */
    /* the operands; ELSEWHERE also: another context's, or a pointer array of both kinds */
    enum gpb_place a, b, c;
    int device;                  /* 1 + the index among our GPUs of the one they live on; 0: on none */
} gpb_facts;

/* True if an operand is where the host cannot reach it. */
static inline bool gpb_facts_on_gpu(const gpb_facts *facts)
{
    return facts->a != GPB_PLACE_HOST || facts->b != GPB_PLACE_HOST || facts->c != GPB_PLACE_HOST;
}

#endif
