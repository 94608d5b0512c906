/* SPDX-License-Identifier: MIT */
/* The way of every TRSM. */
#ifndef GPB_HUB_SOLVE_H
#define GPB_HUB_SOLVE_H

#include "dispatch/solve.h"

/* True if its largest product is the GPU's. */
bool gpb_solve_pays(const gpb_solve *solve);
/* True: B is X. False: the caller must pass its own arguments to the host BLAS under the same name. */
bool gpb_solve_offload(const gpb_solve *solve);

#endif
