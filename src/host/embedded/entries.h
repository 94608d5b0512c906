/* SPDX-License-Identifier: MIT */
/* All entries of one precision and one width of integers. embedded.h includes this file for each width. */
#include "src/host/embedded/level1.h"
#include "src/host/embedded/level2.h"
#include "src/host/embedded/fortran.h"
#include "src/host/embedded/level3.h"
#include "src/host/embedded/cblas.h"
#include "src/host/embedded/lapack.h"
