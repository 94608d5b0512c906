/* SPDX-License-Identifier: MIT */
/* When a launch uses Stream-K: the k of its first tiles is divided evenly among the blocks of a round, so
   that no multiprocessor idles in a last round that does not fill the GPU (kernels/ffma/streamk.cuh). The
   order of sums follows from this, so it depends only on the kernel, the GPU and the sizes. */
#ifndef GPB_STREAMK_H
#define GPB_STREAMK_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/kernel_table.h"

/* `streamk_tiles` and `streamk_blocks` of gemm_args.h. blocks == 0: no Stream-K, each block computes a whole
   tile. */
typedef struct gpb_streamk {
    int64_t tiles;
    int blocks;
} gpb_streamk;

/* For one launch with that many tiles over all members, k > 0. */
gpb_streamk gpb_streamk_choose(const gpb_kernel *kernel, int arch, int sms, int64_t tiles, int64_t k);
/* True if k is deep enough for Stream-K to pay even in a launch with less than one round of tiles. */
bool gpb_streamk_is_deep(int64_t k);
/* Seconds that adding up the partial sums takes. */
double gpb_streamk_fixup_s(const gpb_kernel *kernel, gpb_streamk streamk);
/* Bytes for the partial sums of any launch; 0: this kernel has no Stream-K, or not here. */
int64_t gpb_streamk_bytes(const gpb_kernel *kernel, int sms);
/* True if there is room for them: at most an eighth of the memory, because panels need it more. */
bool gpb_streamk_fits(const gpb_kernel *kernel, int sms, int64_t device_bytes);

#endif
