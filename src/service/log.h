/* SPDX-License-Identifier: MIT */
/* The library's messages: lines "gpublas: ..." on stderr, never on stdout, and nowhere if stderr is not the
   file any more that it was when the library was loaded. Each line is one write(2), so that lines of several
   threads do not mix. Nothing here allocates, fails or changes errno. Lines are cut at 1
   KiB. */
#ifndef GPB_LOG_H
#define GPB_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* A warning, at most once per process for each format (a string literal). */
void gpb_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, each time: for formats whose arguments are what the warning is about. */
void gpb_log_warn_each(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of the trace, always written. */
void gpb_log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line that is written only if GPUBLAS_VERBOSE is 2. */
void gpb_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The warnings given so far in this process: the index-th, or NULL. The first sixteen are kept. */
const char *gpb_log_warning(int index);
/* In a forked child none has been given yet. */
void gpb_log_in_child(void);

/* From now on lines are for the file that stderr is now. The loading does that, and a program that asks for
   lines. */
void gpb_log_note_stderr(void);
/* Stderr is still that file. */
bool gpb_log_is_heard(void);

/* vsnprintf in the C locale. */
int gpb_log_print(char *to, size_t room, const char *format, va_list arguments);
/* Writes all bytes, whatever signals come, and raises none. It is no cancellation point. 0, or an errno. */
int gpb_log_write(int fd, const char *bytes, size_t length);

#endif
