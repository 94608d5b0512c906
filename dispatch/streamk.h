/* SPDX-License-Identifier: MIT */
/* When the k of a launch's first tiles is shared out among the blocks of a round, so that nothing idles in a
   last round that does not fill the GPU (kernels/ffma/streamk.cuh). The order of sums follows from this: it
   is a matter of the kernel, the GPU and the sizes alone. */
#ifndef GPB_STREAMK_H
#define GPB_STREAMK_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/kernel_table.h"

/* `shared` and `sharers` of gemm_args.h; sharers == 0: each block computes a whole tile. */
typedef struct gpb_streamk {
    int64_t tiles;
    int sharers;
} gpb_streamk;

/* For one launch with so many tiles over all members, k > 0. */
gpb_streamk gpb_streamk_choose(const gpb_kernel *kernel, int arch, int sms, int64_t tiles, int64_t k);
/* Some launch of a call could be worth it that by itself is smaller than a round: panels so deep. */
bool gpb_streamk_is_deep(int64_t k);
/* Seconds that adding up the parts takes. */
double gpb_streamk_fixup_s(const gpb_kernel *kernel, gpb_streamk share);
/* Room for the partial sums of any launch; 0: this kernel cannot, or not here. */
int64_t gpb_streamk_bytes(const gpb_kernel *kernel, int sms);
/* There is such room: an eighth of the memory at most, for panels need it more. */
bool gpb_streamk_fits(const gpb_kernel *kernel, int sms, int64_t device_bytes);

#endif
