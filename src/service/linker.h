/* SPDX-License-Identifier: MIT */
/* Threads of ours inside the dynamic linker, and forks. A forked child has none of the other threads, but it
   has the linker in the state in which they left it. */
#ifndef GPB_LINKER_H
#define GPB_LINKER_H

#include <stdbool.h>

/* Bracket any call that may enter the dynamic linker with gpb_linker_enter and gpb_linker_leave. Between them
   a fork waits (100 ms at most), and the thread cannot be cancelled. gpb_linker_enter itself waits for a fork
   under way (200 ms at most). Pass its result to gpb_linker_leave. */
int gpb_linker_enter(void);
/* As gpb_linker_enter, but returns false, and has not entered, if a fork is under way. *cancel is for
   gpb_linker_leave. */
bool gpb_linker_try(int *cancel);
void gpb_linker_leave(int cancel);
/* This thread is in a fork, between our handlers. It must compute on the host, because the GPU's state may be
   the parent's. */
bool gpb_linker_forking(void);
/* This process was forked while a thread of its parent was in the linker. Its locks may be held and its list
   of libraries may be half made for ever, so nothing may be searched or opened. */
bool gpb_linker_spoiled(void);
/* Another thread holds the linker's lock and has slept for 100 ms: it may be in the constructor of a library
   that it opens, and wait for this thread there. (A thread that is at work is waited for, 5 s at most.) Then
   nothing can be searched or opened now, but perhaps by a later call. A lock that is taken after the answer
   is not seen. False where the C library is not glibc. */
bool gpb_linker_is_held(void);
/* Fork handlers, for hub/fork.c. */
void gpb_linker_before_fork(void);
void gpb_linker_in_parent(void);
void gpb_linker_in_child(void);

#endif
