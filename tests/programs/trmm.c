/* SPDX-License-Identifier: MIT */
/* TRMM in four types, on each side, of each triangle, with each letter and diagonal, against a plain sum of
   the elements that are stored: the other triangle and a unit diagonal are NaN, and what is infinite in B may
   be in no result that it has no part in. Each element is within a bound of its own. Exit code: the number of
   wrong results.
   usage: trmm [here | device | odd [largest order [types]]]. device: A and B are in device memory, with
   columns at multiples of 16 bytes; odd: not so. Types of sdcz. After a failure B may be as it was there: the
   last line says how often. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* The order of the triangle, and how many columns or rows B has beside. */
static const struct shape { int order, others; } shapes[] = { { 1, 1 }, { 1, 33 }, { 63, 33 }, { 128, 2 },
    { 129, 300 }, { 256, 1 }, { 257, 40 }, { 600, 33 }, { 601, 400 }, { 1024, 5 }, { 1300, 9 } };
enum { SHAPES = sizeof shapes / sizeof *shapes, MOST = 1310 * 1310 };
static int wrong, as_it_was, on_device, odd, largest = 1300;
static void *at_a, *at_b;                /* in device memory */
enum { LONGEST = 1310 };                 /* order */

static double next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

/* A leading dimension for so many rows. */
static int padded(int rows) { return odd ? (rows + 3) | 1 : (rows + 7) / 4 * 4; }

#define LETTER s
#define ELEMENT float
#define ROUNDING 0x1p-24
#define IS_COMPLEX 0
#include "trmm_typed.h"
#define LETTER d
#define ELEMENT double
#define ROUNDING 0x1p-53
#define IS_COMPLEX 0
#include "trmm_typed.h"
#define LETTER c
#define ELEMENT float complex
#define ROUNDING 0x1p-24
#define IS_COMPLEX 1
#include "trmm_typed.h"
#define LETTER z
#define ELEMENT double complex
#define ROUNDING 0x1p-53
#define IS_COMPLEX 1
#include "trmm_typed.h"

int main(int argc, char **argv)
{
    const char *types = argc > 3 ? argv[3] : "sdcz";
    on_device = argc > 1 && strcmp(argv[1], "here") != 0;
    odd = argc > 1 && !strcmp(argv[1], "odd");
    if (argc > 2) largest = atoi(argv[2]);
    if (on_device) {
        device_enter();
        if (device_alloc(&at_a, sizeof of_a_z) || device_alloc(&at_b, sizeof of_b_z)) return 102;
    }
    if (strchr(types, 's')) all_s();
    if (strchr(types, 'd')) all_d();
    if (strchr(types, 'c')) all_c();
    if (strchr(types, 'z')) all_z();
    printf("as it was: %d\n", as_it_was);
    return wrong < 100 ? wrong : 100;
}
