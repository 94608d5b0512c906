/* SPDX-License-Identifier: MIT */
/* GPUBLAS_VERIFY: each call that a GPU computed is checked on the host, more precisely than it was computed.
   If it is wrong, the host's result replaces it. */
#ifndef GPB_VERIFY_H
#define GPB_VERIFY_H

#include "src/run/compute.h"

/* The state before the call that the check needs. All zero: no check. */
typedef struct gpb_verify {
    bool wanted;
    char *old;                   /* C before the call, one member after another without padding; NULL if beta
                                    is 0 */
} gpb_verify;

/* Called before the call. Checks only calls with operands in host memory, if the option is set. */
gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts);
/* Called after it. False: C was wrong and has been replaced by the host's. Frees what begin allocated. */
bool gpb_verify_end(gpb_verify *verify, const gpb_call *call, const gpb_facts *facts, const gpb_outcome *out);

#endif
