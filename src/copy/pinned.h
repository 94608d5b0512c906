/* SPDX-License-Identifier: MIT */
/* Pinned memory for all our devices. If the driver can pin pages that it did not allocate, the pages are our
   own. It then cannot unmap them when the program resets the device or ends, while the crew still copies to
   them. */
#ifndef GPB_GPU_PINNED_H
#define GPB_GPU_PINNED_H

#include <stdbool.h>
#include <stddef.h>

#include "src/service/driver.h"

typedef struct gpb_pinned {
    void *at;
    size_t bytes;
    bool own, known;             /* own: the pages are ours; known: the driver has pinned them */
} gpb_pinned;

/* Makes the memory ready: allocates and pins `bytes` bytes unless that is done. A context of the device must
   be current. */
CUresult gpb_pinned_ready(gpb_pinned *pinned, CUdevice device, size_t bytes);
/* The device was reset: the driver has forgotten the memory. */
void gpb_pinned_forget(gpb_pinned *pinned);
/* Gives the memory back. A context must be current. */
void gpb_pinned_free(gpb_pinned *pinned);

#endif
