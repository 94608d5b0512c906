/* SPDX-License-Identifier: MIT */
/* Operands of the GPU tests, in every kind of memory that a caller may pass. libcuda is loaded by dlopen, so
   the same program runs on tests/fakecuda. Every operand ends where its allocation ends (on the host: before
   an unmapped page), so that a read past the end shows. */
#ifndef GPB_OPERAND_H
#define GPB_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/type.h"

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_MANAGED, PLACES };
extern const char *const place_names[PLACES];

typedef struct operand {
    enum place place;
    enum gpb_type type;  /* of its elements */
    void *address;       /* the address for the BLAS call: `offset` elements into the allocation */
    void *image;         /* host copy of the whole allocation, offset + count elements */
    int64_t offset, count;
    int shift;           /* bytes by which all of it is off its alignment */
    void *base;          /* where the first element of the image is */
    bool pooled;         /* of PLACE_DEVICE: by cuMemAllocAsync */
} operand;

/* Loads libcuda and makes device 0's primary context current. If there is none, prints that and returns
   false. */
bool gpu_open(void);
/* Compute capability of device 0, major*10 + minor. */
int gpu_arch(void);
/* The calling thread's current context; NULL also if libcuda cannot tell. */
void *gpu_current(void);
/* Makes device 0's primary context current in the calling thread, or none. */
void gpu_make_current(bool current);
/* False if this libcuda has no managed memory. */
bool place_exists(enum place place);

/* Device memory for a program that may not get it: NULL if there is too little. Then: bytes free on device 0,
   and in all. */
void *device_take(size_t bytes);
void device_give(void *memory);
size_t device_free(size_t *total);

/* From here on a crash ends the program. cmocka would jump from it into the next test and leave locks of the
   library and the driver held, so that test would wait for ever. operand_make calls this, too. */
void crash_at_once(void);

/* count elements, the first of them `offset` elements into the allocation. The contents are undefined. Aborts
   the test if there is no memory. */
operand operand_make(enum place place, enum gpb_type type, int64_t count, int64_t offset);
/* The same, `shift` bytes into its allocation. */
operand operand_make_shifted(enum place place, enum gpb_type type, int64_t count, int64_t offset, int shift);
void operand_put(operand *o);                          /* image -> memory */
void operand_get(const operand *o, void *whole);       /* memory -> whole[offset + count] */
void operand_free(operand *o);
/* The image of floats. */
static inline float *operand_floats(const operand *o) { return o->image; }

#endif
