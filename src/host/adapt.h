/* SPDX-License-Identifier: MIT */
/* Calls a host function whose integers have the other width, if the process has a BLAS, but none with the
   caller's width. */
#ifndef GPB_ADAPT_H
#define GPB_ADAPT_H

#include "src/host/symbol.h"

/* The same Fortran routine with integers of the other width; the symbol itself if its routine cannot be
   adapted. */
enum gpb_symbol gpb_adapt_twin(enum gpb_symbol symbol);
/* An entry with the symbol's own signature, which from now on calls the twin's function at that address. */
void *gpb_adapt(enum gpb_symbol symbol, void *address);
/* The twin's function, if the address is the symbol's entry from gpb_adapt; else the address itself. */
void *gpb_adapt_behind(enum gpb_symbol symbol, void *address);

#endif
