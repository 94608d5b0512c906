/* SPDX-License-Identifier: MIT */
/* GPUBLAS_VERIFY: each call that a GPU computed is checked on the host in FP64; where it is wrong, the host's answer replaces it. */
#ifndef GPB_VERIFY_H
#define GPB_VERIFY_H

#include "src/run/compute.h"

/* What a check needs of the time before the call. Zero: none will be made. */
typedef struct gpb_verify {
    bool wanted;
    float *old;                  /* C as it was, member after member without padding; NULL if beta is 0 */
} gpb_verify;

/* Before the call: with operands in host memory, and if the option is set. */
gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts);
/* After it. False: C was wrong, and is now the host's. Gives back what begin took. */
bool gpb_verify_end(gpb_verify *verify, const gpb_call *call, const gpb_facts *facts, const gpb_outcome *out);

#endif
