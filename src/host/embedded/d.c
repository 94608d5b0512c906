/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, double precision. */
#define P d
#define RP d            /* first letters of routines that return a real: dnrm2 */
#define PR d            /* first letters of routines that take reals: drot */
#define R double
#define MIXED s         /* of names as dsgesv */
#define MIXED_RWORK     /* what such a routine has behind swork */
#define WIDE long double      /* squares of R neither overflow nor underflow in it */
#define COMPLEX 0
#include "src/host/embedded/embedded.h"
