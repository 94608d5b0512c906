/* SPDX-License-Identifier: MIT */
/* The table of exported names, and the slots through which their trampolines jump. */
#ifndef GPB_SYMBOL_H
#define GPB_SYMBOL_H

#include <stdbool.h>

enum gpb_symbol {
#define SYMBOL(name, stem, language, width, door) GPB_SYMBOL_##name,
#include "src/host/symbols.h"
    GPB_SYMBOLS
};

enum gpb_language { GPB_LANGUAGE_F77, GPB_LANGUAGE_C };

typedef struct gpb_symbol_row {
    const char *name;            /* as exported: "cblas_sgemm64_" */
    const char *stem;            /* "sgemm" */
    enum gpb_language language;
    int width;                   /* bits of its integers: 32 or 64 */
    void *door;                  /* our function; NULL: calls go straight to the host */
    void *embedded;              /* the embedded function */
} gpb_symbol_row;

extern const gpb_symbol_row gpb_symbol_rows[GPB_SYMBOLS];

/* For trampoline.S, at the first call of a name: fills the slot and returns the target. caller: the address
   that the call returns to. */
void *gpb_symbol_bind(unsigned number, const void *caller);
/* Calls `first` when the first of all names is called, in the thread that calls it. */
void gpb_symbol_on_first(void (*first)(void));
/* A plain name, such as sgemm_ or cblas_sgemm. In an ILP64 build of a BLAS the same name takes 64-bit
   integers. */
bool gpb_symbol_plain(enum gpb_symbol symbol);
/* A library uses the plain names with 64-bit integers. all: all calls of these names go to it unchanged from
   now on. Else only calls from libraries that would have found it without us do, decided call by call. Warns
   once. */
void gpb_symbol_stand_aside(const char *because_of, bool all);
/* The host that we opened uses the plain names with 64-bit integers: its own calls of them go to it, decided
   call by call. */
void gpb_symbol_ask_callers(void);
/* We stand aside for all callers. */
bool gpb_symbol_standing_aside(void);

#endif
