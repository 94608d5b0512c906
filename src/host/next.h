/* SPDX-License-Identifier: MIT */
/* The BLAS behind us: for each exported name, the function that computes what we do not. */
#ifndef GPB_NEXT_H
#define GPB_NEXT_H

#include "src/host/symbol.h"

/* The host's function for a name, found once and kept. Never NULL, because the embedded BLAS has every name;
   never one of ours. */
void *gpb_next(enum gpb_symbol symbol);
/* The file of that function, as text for people; "embedded" if it is our own. */
const char *gpb_next_file(enum gpb_symbol symbol);

#endif
