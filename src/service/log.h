/* SPDX-License-Identifier: MIT */
/* The library's messages: lines "gpublas: ..." on stderr, never on stdout. Each line is one write(2), so that
   lines of several threads do not mix. Nothing here allocates, fails or changes errno. Lines are cut at 1
   KiB. */
#ifndef GPB_LOG_H
#define GPB_LOG_H

/* A warning, at most once per process for each format (a string literal). */
void gpb_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of the trace, always written. */
void gpb_log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line that is written only if GPUBLAS_VERBOSE is 2. */
void gpb_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
