/* SPDX-License-Identifier: MIT */
/* Pressure on device memory from outside: a second process takes nearly all that is free and releases it, at
   random times. The software libcuda gives each process a device of its own. So there a thread of this
   process does it as well, and makes driver calls fail now and then. */
#ifndef GPB_PRESSURE_H
#define GPB_PRESSURE_H

#include <stdbool.h>

/* Starts the process, which then waits. Call it before there are threads and CUDA. The process is this
   program again, with PRESSURE_ARGUMENT as its only argument. */
#define PRESSURE_ARGUMENT "hog"
void pressure_start(void);
/* What main returns in that process. */
int pressure_process(void);

/* True on the software libcuda. */
bool pressure_is_fake(void);
void pressure_begin(void);
/* Prints how much pressure there was and frees what was held. False if it failed, or held next to nothing. */
bool pressure_end(void);

#endif
