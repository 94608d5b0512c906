/* SPDX-License-Identifier: MIT */
/* The threads of the host BLAS. */
#ifndef GPB_HOST_THREADS_H
#define GPB_HOST_THREADS_H

#include <stdbool.h>

/* Finds the functions of a host that say and set how many threads it multiplies with. gemm: its GEMM; NULL:
   the embedded one. Enters the dynamic linker: call it between gpb_linker_enter and gpb_linker_leave. */
void gpb_host_threads_find(const void *gemm);
/* Threads that the host BLAS computes with now, as it says itself; 0: it does not say, or no call has gone to
   it yet. */
int gpb_host_threads(void);
/* The host computes with one thread fewer until gpb_host_threads_take_core, if it would use all cores and can
   be told so. True: it does; then the same thread must call gpb_host_threads_take_core. */
bool gpb_host_threads_leave_core(int cores);
void gpb_host_threads_take_core(void);

#endif
