/* SPDX-License-Identifier: MIT */
/* What the library says: lines "gpublas: ..." on stderr, one write(2) each so that the lines of threads do not mix; never stdout.
   Nothing here allocates, fails or changes errno. Lines are cut at 1 KiB. */
#ifndef GPB_LOG_H
#define GPB_LOG_H

/* A warning, at most once a process for each format (a string literal). */
void gpb_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of the trace, always. */
void gpb_log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Only when GPUBLAS_VERBOSE is 2. */
void gpb_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
