/* SPDX-License-Identifier: MIT */
/* GPUBLAS_REPORT's memory: calls added up by routine, shape and reason. Adding takes no lock and allocates
   nothing, so threads may be added up while the process ends, and signal handlers may end it anywhere. */
#ifndef GPB_TALLY_H
#define GPB_TALLY_H

#include <stdbool.h>

#include "dispatch/call.h"

typedef struct gpb_tally {
#define AMOUNT(field, name) double field;
#include "src/hub/tally.def"
#undef AMOUNT
} gpb_tally;

/* If the smallest of m, n and k is less than an eighth of the largest: whether that is k, or m or n. */
enum gpb_tally_form { GPB_TALLY_SQUARE, GPB_TALLY_SMALL_K, GPB_TALLY_THIN };

/* Calls that are alike. */
typedef struct gpb_tally_kind {
    const char *symbol;          /* NULL: all for which there was no room */
    const char *why;             /* the reason for where they went */
    enum gpb_tally_form form;
    int octave;                  /* the cube root of m n k is in [2^octave, 2^(octave + 1)) */
    char type;
} gpb_tally_kind;

/* Adds to gpublas_stats what is counted there only while there is a report, too. */
void gpb_tally_add(const gpb_call *call, const char *why, const gpb_tally *amounts);
/* Calls `take` with `into`, each kind and its amounts so far, some kinds several times. */
void gpb_tally_read(void (*take)(void *into, const gpb_tally_kind *kind, const gpb_tally *amounts),
                    void *into);
/* A forked child begins at zero. */
void gpb_tally_in_child(void);

#endif
