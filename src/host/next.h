/* SPDX-License-Identifier: MIT */
/* The BLAS behind us: for each exported name, the function that computes what we do not. */
#ifndef GPB_NEXT_H
#define GPB_NEXT_H

#include "dispatch/type.h"
#include "src/host/symbol.h"

/* The host's function for a name, found once and kept. Never NULL, because the embedded BLAS has every name;
   never one of ours. */
void *gpb_next(enum gpb_symbol symbol);
/* A routine's Fortran names by type and width of integers, 32 and 64: an initializer. Of a routine that only
   complex types have, those. */
#define GPB_NEXT_NAMES(stem)                                              \
    { [GPB_TYPE_s] = { GPB_SYMBOL_s##stem##_, GPB_SYMBOL_s##stem##_64_ }, \
      [GPB_TYPE_d] = { GPB_SYMBOL_d##stem##_, GPB_SYMBOL_d##stem##_64_ }, \
      [GPB_TYPE_c] = { GPB_SYMBOL_c##stem##_, GPB_SYMBOL_c##stem##_64_ }, \
      [GPB_TYPE_z] = { GPB_SYMBOL_z##stem##_, GPB_SYMBOL_z##stem##_64_ } }
#define GPB_NEXT_COMPLEX_NAMES(stem)                                      \
    { [GPB_TYPE_c] = { GPB_SYMBOL_c##stem##_, GPB_SYMBOL_c##stem##_64_ }, \
      [GPB_TYPE_z] = { GPB_SYMBOL_z##stem##_, GPB_SYMBOL_z##stem##_64_ } }
typedef enum gpb_symbol gpb_next_names[GPB_TYPES][2];
/* The host's function of one of them. */
static inline void *gpb_next_of(const gpb_next_names names, enum gpb_type type, int width)
{
    return gpb_next(names[type][width == 64]);
}
/* How it was found, as a phrase. */
const char *gpb_next_way(enum gpb_symbol symbol);
/* The file of that function, as text for people; "embedded" if it is our own. */
const char *gpb_next_file(enum gpb_symbol symbol);

#endif
