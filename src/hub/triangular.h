/* SPDX-License-Identifier: MIT */
/* The way of every TRSM and TRMM. */
#ifndef GPB_HUB_TRIANGULAR_H
#define GPB_HUB_TRIANGULAR_H

#include "dispatch/triangular.h"
#include "src/hub/offload.h"

/* True if its largest product is the GPU's. */
bool gpb_triangular_pays(const gpb_triangular *t);
/* True: B is done. False: the caller must pass its own arguments to the host BLAS under the same name. */
bool gpb_triangular_offload(const gpb_triangular *t);
/* The second half of it: by products that are calls of their own. */
bool gpb_triangular_by_calls(const gpb_triangular *t);
/* The way of a batch of TRSM (call.h), as gpb_offload is that of products. */
bool gpb_triangular_batch(const gpb_call *batch, gpb_host_call *record);

#endif
