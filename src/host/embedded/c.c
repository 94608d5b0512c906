/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, single complex. */
#define P c
#define RP sc           /* first letters of routines that return a real: scnrm2 */
#define RR s                  /* its real type: scabs1 */
#define PR cs           /* first letters of routines that take reals: csrot */
#define R float
#define WIDE double            /* squares of R neither overflow nor underflow in it */
#define COMPLEX 1
#include "src/host/embedded/embedded.h"
