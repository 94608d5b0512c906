/* SPDX-License-Identifier: MIT */
/* Threads of our own. */
#ifndef GPB_THREAD_H
#define GPB_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Starts a detached thread, which makes that call. stack: the size of its stack in bytes; 0: the process's
   default. The program's signals are blocked in it, except those that its own instructions raise. These must
   reach the program's handlers, because a fault may be in a page that such a handler provides, and because a
   crash reporter must see a bad pointer wherever it is used. Its modes of arithmetic are those in which a
   process begins, whatever the caller's are. Returns 0 or an error number. */
int gpb_thread_begin(void *(*call)(void *), size_t stack);
/* This thread is one of those. */
bool gpb_thread_is_own(void);

#endif
