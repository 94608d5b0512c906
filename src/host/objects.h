/* SPDX-License-Identifier: MIT */
/* The libraries of the process (shared objects), and those among them that we opened ourselves. Everything
   here enters the dynamic linker: call it between gpb_linker_enter and gpb_linker_leave. */
#ifndef GPB_OBJECTS_H
#define GPB_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks one library for an address. file: its path. with: the caller's own. */
typedef void *gpb_objects_visitor(void *handle, const char *file, const void *with);

/* Visits the libraries that the program brought, in load order, until a visit returns an address. Returns
   that address, and pins its library; NULL: none. newest: visits only so many of the libraries that were
   loaded last. */
#define GPB_OBJECTS_ALL SIZE_MAX
void *gpb_objects_find(size_t newest, gpb_objects_visitor *visit, const void *with);
/* Opens a library that the program did not bring, and marks everything that came with it as ours. It is never
   closed again. Returns its handle, or NULL (dlerror says why). */
void *gpb_objects_open(const char *name);
/* A library is being opened, so it may be in the process without being marked as ours. */
bool gpb_objects_opening(void);
/* Keeps the library with that address in the process, also if the program closes it. Returns the address. */
void *gpb_objects_pin(void *address);
/* Where the library with that address begins; 0: no library has it. */
uintptr_t gpb_objects_base(const void *address);
/* A handle, for dlclose, of the library with that address; NULL: none, or the program itself. */
void *gpb_objects_holding(const void *address);
/* A handle, for dlclose, through which dlsym finds what the library with that code finds; NULL: none. */
void *gpb_objects_scope(const void *code);

#endif
