/* SPDX-License-Identifier: MIT */
/* The routines of routine.def through the library's CBLAS names, in each type, with operands anywhere. */
#ifndef GPB_GPU_CALL_H
#define GPB_GPU_CALL_H

#include "tests/cblas.h"
#include "tests/problem.h"

/* x as the type holds it. */
gpb_scalar call_rounded(enum gpb_type type, gpb_scalar x);

/* The problem's routine on operands whose first elements are there. stride: elements from a member of a batch
   to the next, of each operand. */
void call_through_cblas(const gpb_problem *of, gpb_scalar alpha, gpb_scalar beta,
                        void *const at[GPB_OPERANDS], const int64_t stride[GPB_OPERANDS]);

#endif
