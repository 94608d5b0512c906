/* SPDX-License-Identifier: MIT */
/* Addresses that no memory of a GPU can have, known without asking the driver: a small call has no time for that. */
#ifndef GPB_HOST_MEMORY_H
#define GPB_HOST_MEMORY_H

#include <stdbool.h>

/* True if all `count` addresses are of the heap that grows by brk (where malloc puts what is smaller than 128 KiB, on the main thread), of
   the calling thread's stack or of the program's own static data. False says nothing. */
bool gpb_host_memory(const void *const *pointers, int count);

/* False: the process may not read there; a BLAS on the host would crash. Asks the kernel: 0.1 us. */
bool gpb_host_readable(const void *pointer);

#endif
