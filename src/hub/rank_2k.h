/* SPDX-License-Identifier: MIT */
/* The way of every SYR2K and HER2K. */
#ifndef GPB_HUB_RANK_2K_H
#define GPB_HUB_RANK_2K_H

#include "src/hub/offload.h"

/* first: the product with beta; the other follows from it. True: C is done. False: as gpb_offload. */
bool gpb_rank_2k_offload(const gpb_call *first, gpb_host_call *record);

#endif
