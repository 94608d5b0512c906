/* SPDX-License-Identifier: MIT */
/* The embedded fatbins, one for each row of kernels/images.def (image.S). */
#ifndef GPB_IMAGE_H
#define GPB_IMAGE_H

#include "dispatch/kernel_table.h"

extern const void *const gpb_images[GPB_IMAGES];

#endif
