/* SPDX-License-Identifier: MIT */
/* Threads of our own. */
#ifndef GPB_THREAD_H
#define GPB_THREAD_H

#include <stddef.h>

/* A detached thread on a stack of so many bytes (0: as large as this process's stacks are). The program's signals are not for it, but those
   that its own instructions raise are: a fault in a page that the program's handler provides must reach that handler, and a bad pointer of
   the program's the reporter of crashes, wherever it is met. 0, or an error number. */
int gpb_thread_begin(void *(*body)(void *), size_t stack);

#endif
