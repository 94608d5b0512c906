/* SPDX-License-Identifier: MIT */
/* libblas.so.3 and liblapack.so.3 as programs need them by name. They have no code. They bring libgpublas,
   whose names come first, and OpenBLAS, which is the host and has the rest of LAPACK. */
typedef int gpb_shim_is_empty;
