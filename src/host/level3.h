/* SPDX-License-Identifier: MIT */
/* The host's own Fortran routines, as we call them to do a part of a call. */
#ifndef GPB_HOST_LEVEL3_H
#define GPB_HOST_LEVEL3_H

#include "dispatch/call.h"
#include "dispatch/triangular.h"

/* One member of a GEMM without a structure, by the host's GEMM of the call's integer width. */
void gpb_host_gemm(const gpb_call *call);
/* The same, or a SYRK or HERK, by the host's routine of that name. */
void gpb_host_multiply(const gpb_call *call);
/* A TRSM or TRMM. */
void gpb_host_triangular(const gpb_triangular *t);
/* A TRSM of which the first `done` columns of X are in the place of B's: the others. */
void gpb_host_triangular_rest(const gpb_triangular *t, int64_t done);

#endif
