/* SPDX-License-Identifier: MIT */
/* Copies of rectangles of a symmetric or Hermitian matrix, of which one triangle is stored. */
#ifndef GPB_MIRROR_H
#define GPB_MIRROR_H

#include "src/copy/copy2d.h"

/* gpb_copy2d of a job that mirrors. */
void gpb_mirror(const gpb_copy2d_job *rectangle);

#endif
