/* SPDX-License-Identifier: MIT */
/* Compares what calls really took with the model: a correction for each class of calls. Any thread may read
   and add at any time. */
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
    GPB_LEARN_KEPT = 1024,       /* sizes that are remembered individually */
    GPB_LEARN_SURE = 8           /* after this many calls a class is known for sure */
};

/* Measured / modelled time in units of 2^-16, and its weight: calls seen, at most GPB_LEARN_SURE. The first
   call of a class has no weight, because it starts threads, loads kernels and touches pages. Of a size, `tag`
   says which one it is, and `tries` how many of its calls went to the other side to try it. */
typedef struct gpb_learn_cell {
    uint32_t ratio, seen : 6, tries : 2, tag : 24;
} gpb_learn_cell;

typedef struct gpb_learn {
    _Atomic gpb_learn_cell cell[GPB_LEARN_CLASSES], kept[GPB_LEARN_KEPT];
} gpb_learn;

/* How a call is looked up. class: routine and type, octave of its operations, and shape (tiny in one
   direction, skinny, or neither). place, tag: for its exact size, the first of its places in `kept`, and its
   tag there. */
typedef struct gpb_learn_key {
    int class;
    uint32_t place, tag;
} gpb_learn_key;
gpb_learn_key gpb_learn_key_of(const gpb_call *call);
/* A hash of all that tells one size from another: routine, type, sides, batch, transpositions, triangles,
   whether C is read. */
uint64_t gpb_learn_hash(const gpb_call *call);

/* Measured / modelled time for such calls, as far as known. If this size is known, its own value; else its
   class's, to which near classes and "as modelled" (1) contribute. If a size is slower than its class, that
   is believed only gradually, as it is seen more often. Otherwise two disturbed calls could send a size to
   the other side, and it would never be measured on this side again. curious, for the host: a class that was
   never tried is assumed to be better than its neighbours, because otherwise it would never be tried. */
double gpb_learn_ratio(const gpb_learn *learnt, gpb_learn_key key, bool curious);
/* What both tables say of such calls: sets host_ratio, gpu_ratio, try_host, try_gpu. If one side knows this
   size (from four calls), the other side's value is believed as soon as it was tried (three times). */
void gpb_learn_facts(const gpb_learn *host, const gpb_learn *gpu, gpb_learn_key key, gpb_facts *facts);
/* Notes that a call of that size, which this table knows, goes to the other side to try it. */
void gpb_learn_tried(gpb_learn *learnt, gpb_learn_key key);
/* Adds one call. True if the value of its class changed by more than a tenth or became sure. */
bool gpb_learn_add(gpb_learn *learnt, gpb_learn_key key, double modelled_s, double measured_s);
/* Sets a class as it was saved. False: out of bounds. */
bool gpb_learn_set(gpb_learn *learnt, int class, gpb_learn_cell cell);

#endif
