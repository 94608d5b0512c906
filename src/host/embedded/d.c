/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, double precision. */
#define P d
#define RP d            /* first letters of what returns a real: dnrm2 */
#define PR d            /* first letters of what takes reals: drot */
#define R double
#define WIDE long double      /* squares of R neither overflow nor vanish in it */
#define COMPLEX 0
#include "src/host/embedded/embedded.h"
