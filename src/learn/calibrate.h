/* SPDX-License-Identifier: MIT */
/* Calibration at the first use of the GPU: measures the machine in a few milliseconds, or loads what an
   earlier process measured (GPUBLAS_CALIBRATION). */
#ifndef GPB_CALIBRATE_H
#define GPB_CALIBRATE_H

#include <stdbool.h>

/* Fills gpb_machine_here. What cannot be measured keeps its presumed value. The GPUs must be started. True:
   the machine was measured, and that is worth saving. */
bool gpb_calibrate(void);
/* Makes a call, as measuring does, so that the program's first one finds its kernels loaded. */
void gpb_calibrate_warm(void);

#endif
