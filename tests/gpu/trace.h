/* SPDX-License-Identifier: MIT */
/* The library's trace of a call, caught on its way to stderr. One thread at a time. */
#ifndef GPB_TRACE_H
#define GPB_TRACE_H

#include <stddef.h>

/* Between begin and end everything written to stderr is kept, and GPUBLAS_VERBOSE is 1. */
void trace_begin(void);
/* The text so far, cut at 4 KiB; valid until the next trace_begin. */
const char *trace_end(void);
/* The value of " key=value" in the trace's first line of a call, "" if there is none. */
const char *trace_value(const char *trace, const char *key, char *value, size_t size);

#endif
