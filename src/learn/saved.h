/* SPDX-License-Identifier: MIT */
/* The calibration that outlives the process, in the file of GPUBLAS_CALIBRATION. */
#ifndef GPB_SAVED_H
#define GPB_SAVED_H

#include <stdbool.h>

/* Reads the file in a thread of its own, because a home folder may hang. */
void gpb_saved_read(void);
/* Fills gpb_machine_here from that file, for which it waits a little. False: there is no such file, or it is
   of another machine. The GPUs must be started. */
bool gpb_saved_load(void);
/* Writes gpb_machine_here to the file. False: it could not. */
bool gpb_saved_write(void);

#endif
