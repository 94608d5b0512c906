/* SPDX-License-Identifier: MIT */
/* Work that is shared among the host's cores, because what answers are compared with is slow. */
#ifndef GPB_GPU_CORES_H
#define GPB_GPU_CORES_H

#include <stdint.h>

/* what(of, x) for each x below count, about `steps` nanoseconds each: in this thread alone if that is
   little. */
void cores_each(int64_t count, int64_t steps, void (*what)(void *, int64_t), void *of);

#endif
