/* SPDX-License-Identifier: MIT */
/* How the embedded BLAS reports illegal arguments. name: the routine in lower case, "sgemm"; width: that of
   its integers, 32 or 64. */
#ifndef GPB_EMBEDDED_ERROR_H
#define GPB_EMBEDDED_ERROR_H

#include <stdbool.h>

/* If info is not 0, calls the exported xerbla_ (or xerbla_64_) with the name as netlib writes it, "SGEMM ",
   and returns true. */
bool gpb_embedded_bad(int width, const char *name, int info);

/* True if values[i] is an enumerator of kinds[i] for each i: L layout, T transposition, U triangle, D
   diagonal, S side. Else calls the exported cblas_xerbla (or cblas_xerbla_64) with parameter number i + 1,
   and returns false. */
bool gpb_embedded_legal(int width, const char *name, const char *kinds, const int *values);

#endif
