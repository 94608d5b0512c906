/* SPDX-License-Identifier: MIT */
/* Operands of the GPU tests, in every kind of memory a caller may hand over. libcuda comes by dlopen: the same program runs on
   tests/fakecuda. Every operand ends where its allocation ends (host: at an unmapped page), so that a read past it shows. */
#ifndef GPB_OPERAND_H
#define GPB_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_MANAGED, PLACES };
extern const char *const place_names[PLACES];

typedef struct operand {
    enum place place;
    float *address;      /* what the BLAS call gets: `offset` floats into the allocation */
    float *image;        /* host copy of the whole allocation, offset + count floats */
    int64_t offset, count;
    void *base;          /* the allocation itself */
} operand;

/* Loads libcuda and makes device 0's primary context current. False, said aloud, if there is none to be had. */
bool gpu_open(void);
/* Compute capability of device 0, major*10 + minor. */
int gpu_arch(void);
/* The calling thread's current context; NULL also where libcuda cannot tell. */
void *gpu_current(void);
/* Makes device 0's primary context current, or none, in the calling thread. */
void gpu_make_current(bool current);
/* False where this libcuda has no managed memory. */
bool place_exists(enum place place);

/* Device memory for a program that may be refused it: NULL if there is not so much. Bytes free on device 0, and all it has. */
void *device_take(size_t bytes);
void device_give(void *memory);
size_t device_free(size_t *total);

/* From here on a crash ends the program. cmocka would jump out of it into the next test, and leave the library's and the driver's locks held:
   that test then waits for ever. operand_make does this, too. */
void crash_at_once(void);

/* count floats, the first of them `offset` floats into the allocation; contents undefined. Aborts the test if memory runs out. */
operand operand_make(enum place place, int64_t count, int64_t offset);
void operand_put(operand *o);                          /* image -> memory */
void operand_get(const operand *o, float *whole);      /* memory -> whole[offset + count] */
void operand_free(operand *o);

#endif
