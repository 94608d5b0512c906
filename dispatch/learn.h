/* SPDX-License-Identifier: MIT */
/* What calls really took, against what the model says: a correction for each class of calls. Any thread may read and add at any time. */
#ifndef GPB_LEARN_H
#define GPB_LEARN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"

enum { GPB_LEARN_OCTAVES = 40, GPB_LEARN_SHAPES = 3, GPB_LEARN_CLASSES = GPB_LEARN_OCTAVES * GPB_LEARN_SHAPES, GPB_LEARN_SURE = 8 };

/* Measured / modelled of one class, in 2^-16, and how much it is worth: calls seen, at most GPB_LEARN_SURE. The first is worth nothing: it
   starts threads, loads kernels, touches pages. */
typedef struct gpb_learn_cell {
    uint32_t ratio, seen;
} gpb_learn_cell;

typedef struct gpb_learn {
    _Atomic gpb_learn_cell cell[GPB_LEARN_CLASSES];
} gpb_learn;

/* A call's class: octave of its operations, and its shape: tiny in one direction, skinny, or neither. */
int gpb_learn_class(const gpb_call *call);
/* Measured / modelled for calls of that class, as far as known: near classes lend theirs, and "as modelled" (1) counts a little. */
double gpb_learn_ratio(const gpb_learn *learnt, int class);
/* One more call of that class. True if what is known of it changed by more than a tenth, or became sure. */
bool gpb_learn_add(gpb_learn *learnt, int class, double modelled_s, double measured_s);
/* A cell as it was saved. False: out of bounds. */
bool gpb_learn_set(gpb_learn *learnt, int class, gpb_learn_cell cell);

#endif
