/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, single precision. */
#define P s
#define RP s            /* first letters of routines that return a real: snrm2 */
#define PR s            /* first letters of routines that take reals: srot */
#define R float
#define WIDE double            /* squares of R neither overflow nor underflow in it */
#define SINGLE 1
#define COMPLEX 0
#include "src/host/embedded/embedded.h"
