/* SPDX-License-Identifier: MIT */
/* What a library of the process offers as a BLAS: asked of its names, and of what its functions do. Handles
   are dlopen's, or RTLD_NEXT. Everything here enters the dynamic linker: call it between gpb_linker_enter and
   gpb_linker_leave. */
#ifndef GPB_PROBE_H
#define GPB_PROBE_H

#include <stdbool.h>

#include "src/host/symbol.h"

/* The function of that name; NULL: it has none, or one that would only come back to us. */
void *gpb_probe_lookup(void *handle, const char *name);
/* Bits of the integers behind a library's plain names: 32 or 64; 0: it has no plain names that work;
   GPB_PROBE_FORWARDS: it passes its calls on to us. */
enum { GPB_PROBE_FORWARDS = -1 };
int gpb_probe_width(void *handle);
/* The library's function of the row's routine, language and width, under any spelling, the row's own first;
   NULL: it has none. */
void *gpb_probe_offered(void *handle, const gpb_symbol_row *row);
/* The function of that row returns its complex result through a hidden first argument. */
bool gpb_probe_hides_result(const gpb_symbol_row *row, void *address);
/* For our door of isamax_: this call is a probe of this thread's, which has come back to us. */
bool gpb_probe_came_back(void);

#endif
