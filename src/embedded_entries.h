/* SPDX-License-Identifier: MIT */
/* All entries of one precision and one width of integers; included by embedded.h for each width. */
#include "src/embedded_level1.h"
#include "src/embedded_level2.h"
#include "src/embedded_fortran.h"
#include "src/embedded_level3.h"
#include "src/embedded_cblas.h"
