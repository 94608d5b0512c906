/* SPDX-License-Identifier: MIT */
/* The way of a factorisation or a solve that stays on the GPU from beginning to end. */
#ifndef GPB_HUB_RESIDENT_H
#define GPB_HUB_RESIDENT_H

#include "dispatch/resident.h"

/* DONE: *info is LAPACK's. Else nothing is changed. HOST: the host is faster, and has been entered:
   gpb_routing_leave_host is to follow what it computes. BY_CALLS: the GPU could not do it in this way; it may
   by products of its own. */
enum gpb_resident_answer { GPB_RESIDENT_DONE, GPB_RESIDENT_HOST, GPB_RESIDENT_BY_CALLS };
enum gpb_resident_answer gpb_resident_offload(const gpb_resident *work, int64_t *info);

#endif
