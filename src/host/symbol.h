/* SPDX-License-Identifier: MIT */
/* The table of exported names, and the slots their trampolines jump through. */
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
    void *door;                  /* our function, or NULL: goes straight to the host */
    void *embedded;              /* the embedded default */
} gpb_symbol_row;

extern const gpb_symbol_row gpb_symbol_rows[GPB_SYMBOLS];

/* Called by trampoline.S at the first call of a name: settles the slot and returns where to go. `caller`: where the call came from. */
void *gpb_symbol_bind(unsigned number, const void *caller);
/* sgemm_, cblas_sgemm: the names that mean 64-bit integers in an ILP64 build of the same name. */
bool gpb_symbol_plain(enum gpb_symbol symbol);
/* A library uses the plain names with 64-bit integers. `all`: it is everybody's, and from now on these names go to it untouched. Else they
   do so for who would have found it without us: decided call by call. One warning. */
void gpb_symbol_stand_aside(const char *because_of, bool all);
/* For all. */
bool gpb_symbol_standing_aside(void);

#endif
