/* SPDX-License-Identifier: MIT */
/* Calibration at the first use of the GPU: measures the machine in a few milliseconds, or loads what an
   earlier process measured (GPUBLAS_CALIBRATION). */
#ifndef GPB_CALIBRATE_H
#define GPB_CALIBRATE_H

#include <stdbool.h>

/* Makes a lane, loads the kernels that most calls need, and fills gpb_machine_here. What cannot be measured
   keeps its presumed value. The GPUs must be started. True: the machine was measured, and that is worth
   saving. */
bool gpb_calibrate(void);

#endif
