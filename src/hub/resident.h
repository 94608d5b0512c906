/* SPDX-License-Identifier: MIT */
/* The way of a factorisation or a solve that stays on the GPU from beginning to end. */
#ifndef GPB_HUB_RESIDENT_H
#define GPB_HUB_RESIDENT_H

#include "dispatch/resident.h"

/* True: it is done, and *info is LAPACK's. Else nothing is changed, and it can be done by calls or by the
   host. */
bool gpb_resident_offload(const gpb_resident *work, int64_t *info);

#endif
