/* SPDX-License-Identifier: MIT */
/* Factors that stay on the GPU (src/run/kept.h), in four types: routines that follow a factorisation take
   them if the host's copy is the same, and only then. The bytes that went up say whether they were sent
   again; whether the result is right is seen by multiplying with the host's copy of the factors. Exit code:
   the number of wrong results.
   usage: kept [order [types]], types of sdcz */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/gpublas.h"

enum { MOST = 700, NRHS = 40 };
static int ipiv[MOST], wrong, n = 300, ld = 303;

static double next(void)
{
    static unsigned long long state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

static unsigned long long sent(void)
{
    static unsigned long long before;
    gpublas_stats_t now;
    if (gpublas_stats(&now, sizeof now)) exit(100);
    const unsigned long long bytes = now.bytes_to_gpu - before;
    before = now.bytes_to_gpu;
    return bytes;
}

static void expect(int good, const char *what, char letter)
{
    if (good) return;
    printf("wrong: %c, %s\n", letter, what);
    wrong++;
}

#define LETTER s
#define ELEMENT float
#define REAL float
#define ROUNDING 0x1p-23
#include "tests/programs/kept_typed.h"
#define LETTER d
#define ELEMENT double
#define REAL double
#define ROUNDING 0x1p-52
#include "tests/programs/kept_typed.h"
#define LETTER c
#define ELEMENT float complex
#define REAL float
#define ROUNDING 0x1p-23
#define IS_COMPLEX
#include "tests/programs/kept_typed.h"
#define LETTER z
#define ELEMENT double complex
#define REAL double
#define ROUNDING 0x1p-52
#define IS_COMPLEX
#include "tests/programs/kept_typed.h"

int main(int argc, char **argv)
{
    if (argc > 1) n = atoi(argv[1]);
    ld = n + 3;
    if (n < 2 || ld > MOST) return 100;
    for (const char *type = argc > 2 ? argv[2] : "sdcz"; *type; type++)
        if (*type == 's') all_s();
        else if (*type == 'd') all_d();
        else if (*type == 'c') all_c();
        else if (*type == 'z') all_z();
        else return 100;
    return wrong;
}
