/* SPDX-License-Identifier: MIT */
/* Pinned memory for all our devices. The pages are our own and the driver is told of them, where it takes that: it then cannot unmap them
   under the crew, which is at work in them, when the program resets the device or ends. */
#ifndef GPB_GPU_PINNED_H
#define GPB_GPU_PINNED_H

#include <stdbool.h>
#include <stddef.h>

#include "src/service/driver.h"

typedef struct gpb_pinned {
    void *at;
    size_t bytes;
    bool own, known;             /* our pages; the driver knows them, and has pinned them */
} gpb_pinned;

/* So many bytes, as far as they are not there yet; a context of the device is current. */
CUresult gpb_pinned_ready(gpb_pinned *pinned, CUdevice device, size_t bytes);
/* The device was reset: what the driver had of it is gone. */
void gpb_pinned_forget(gpb_pinned *pinned);
/* Gives it back. A context is current. */
void gpb_pinned_free(gpb_pinned *pinned);

#endif
