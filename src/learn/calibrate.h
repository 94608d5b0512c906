/* SPDX-License-Identifier: MIT */
/* Measuring the machine at first use of the GPU, in a few milliseconds; or knowing it from last time (GPUBLAS_CALIBRATION). */
#ifndef GPB_CALIBRATE_H
#define GPB_CALIBRATE_H

#include <stdbool.h>

/* In a thread of its own, for who knows where a home folder lies: reads the file. */
void gpb_calibrate_read(void);
/* With the GPUs started: makes a lane and loads the kernels that most calls need, and fills gpb_machine_here. What cannot be measured stays
   as presumed. True: it was measured, and is worth saving. */
bool gpb_calibrate(void);
/* Saves gpb_machine_here where it will be looked for. */
void gpb_calibrate_save(void);

#endif
