/* SPDX-License-Identifier: MIT */
/* What calls really took, against what the model says: a correction for each class of calls. Any thread may
   read and add at any time. */
#ifndef GPB_LEARN_H
#define GPB_LEARN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dispatch/call.h"
#include "dispatch/facts.h"

enum {
    GPB_LEARN_OCTAVES = 40, GPB_LEARN_SHAPES = 3,
    GPB_LEARN_OF_TYPE = GPB_LEARN_OCTAVES * GPB_LEARN_SHAPES,      /* classes of one routine and type */
    GPB_LEARN_CLASSES = GPB_LEARN_OF_TYPE * GPB_TYPES * GPB_ROUTINES,
    GPB_LEARN_KEPT = 1024,       /* sizes that are remembered one by one */
    GPB_LEARN_SURE = 8           /* calls, then what is known of a class is sure */
};

/* Measured / modelled, in 2^-16, and how much it is worth: calls seen, at most GPB_LEARN_SURE. A class's
   first is worth nothing: it starts threads, loads kernels, touches pages. Of a size, `tag`: which one it is;
   `tries`: calls of it that went to the other side to try it. */
typedef struct gpb_learn_cell {
    uint32_t ratio, seen : 6, tries : 2, tag : 24;
} gpb_learn_cell;

typedef struct gpb_learn {
    _Atomic gpb_learn_cell cell[GPB_LEARN_CLASSES], kept[GPB_LEARN_KEPT];
} gpb_learn;

/* What a call is to this: its class (routine and type; octave of its operations; shape: tiny in one
   direction, skinny, or neither), and its very size (the first of the places in `kept` that it may have, and
   the tag it has there). */
typedef struct gpb_learn_key {
    int class;
    uint32_t place, tag;
} gpb_learn_key;
gpb_learn_key gpb_learn_key_of(const gpb_call *call);
/* All that tells one size from another: routine, type, sides, batch, transpositions, triangle, whether C is
   read. */
uint64_t gpb_learn_hash(const gpb_call *call);

/* Measured / modelled for calls like that, as far as known: of this size; else of its class, to which near
   classes lend theirs, and "as modelled" (1) counts a little. That a size is slower than its class is
   believed by and by, as it is seen more often: a size that two disturbed calls sent to the other side would
   never be measured on this one again. `curious`, for the host: a class that was never tried is thought
   better of than its neighbours, or it would never be tried. */
double gpb_learn_ratio(const gpb_learn *learnt, gpb_learn_key key, bool curious);
/* What both sides' tables say of calls like that: fills host_ratio, gpu_ratio, try_host, try_gpu. Beside a
   side that knows this size (from four calls) the other is taken at its word as soon as it was tried (three
   times). */
void gpb_learn_facts(const gpb_learn *host, const gpb_learn *gpu, gpb_learn_key key, gpb_facts *facts);
/* A call of that size, which this table knows, goes to the other side to try it. */
void gpb_learn_tried(gpb_learn *learnt, gpb_learn_key key);
/* One more call. True if what is known of its class changed by more than a tenth, or became sure. */
bool gpb_learn_add(gpb_learn *learnt, gpb_learn_key key, double modelled_s, double measured_s);
/* A class as it was saved. False: out of bounds. */
bool gpb_learn_set(gpb_learn *learnt, int class, gpb_learn_cell cell);

#endif
