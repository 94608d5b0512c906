/* SPDX-License-Identifier: MIT */
/* The embedded BLAS, single complex. */
#define P c
#define RP sc           /* first letters of what returns a real: scnrm2 */
#define RR s                  /* its real type: scabs1 */
#define PR cs           /* first letters of what takes reals: csrot */
#define R float
#define WIDE double            /* squares of R neither overflow nor vanish in it */
#define COMPLEX 1
#include "src/host/embedded/embedded.h"
