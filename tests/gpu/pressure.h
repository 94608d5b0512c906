/* SPDX-License-Identifier: MIT */
/* Pressure on device memory from outside: a second process holds nearly all that is free, and lets it go, at random. The software libcuda
   gives each process a device of its own: there a thread of this process does so, too, and makes driver calls fail now and then. */
#ifndef GPB_PRESSURE_H
#define GPB_PRESSURE_H

#include <stdbool.h>

/* Starts the process, before there are threads and CUDA; it waits. It is this program again, with one argument, PRESSURE_ARGUMENT. */
#define PRESSURE_ARGUMENT "hog"
void pressure_start(void);
/* What that one's main is to return. */
int pressure_process(void);

/* True on the software libcuda. */
bool pressure_is_fake(void);
void pressure_begin(void);
/* Says what there was of it; what was held is free again. False if it failed, or held next to nothing. */
bool pressure_end(void);

#endif
