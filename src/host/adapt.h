/* SPDX-License-Identifier: MIT */
/* A routine by the host's function of the other width, where the process has a BLAS, but none with the caller's integers. */
#ifndef GPB_ADAPT_H
#define GPB_ADAPT_H

#include "src/host/symbol.h"

/* The same Fortran routine with integers of the other width; the symbol itself if it is not one that can be adapted. */
enum gpb_symbol gpb_adapt_twin(enum gpb_symbol symbol);
/* What may be called as `symbol` from now on, by way of the twin's function at that address. */
void *gpb_adapt(enum gpb_symbol symbol, void *address);
/* The twin's function if the address is what gpb_adapt gave for the symbol, else the address. */
void *gpb_adapt_behind(enum gpb_symbol symbol, void *address);

#endif
