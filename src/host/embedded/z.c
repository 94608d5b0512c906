/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, double complex. */
#define P z
#define RP dz           /* first letters of routines that return a real: dznrm2 */
#define RR d                  /* its real type: dcabs1 */
#define PR zd           /* first letters of routines that take reals: zdrot */
#define R double
#define MIXED c         /* of names as zcgesv */
#define MIXED_RWORK , double *rwork __attribute__((unused))
#define WIDE long double      /* squares of R neither overflow nor underflow in it */
#define COMPLEX 1
#include "src/host/embedded/embedded.h"
