/* SPDX-License-Identifier: MIT */
/* Addresses that cannot be GPU memory, known without asking the driver, because a small call has no time for
   that. */
#ifndef GPB_HOST_MEMORY_H
#define GPB_HOST_MEMORY_H

#include <stdbool.h>

/* True if all `count` addresses are in the heap that grows by brk (where malloc puts blocks below 128 KiB on
   the main thread), on the calling thread's stack or in the program's static data. False says nothing. */
bool gpb_host_memory(const void *const *pointers, int count);

/* False: the process may not read there, so a BLAS on the host would crash. Asks the operating system: 0.1
   us. */
bool gpb_host_readable(const void *pointer);

#endif
