/* SPDX-License-Identifier: MIT */
/* C = beta C on the host. */
#ifndef GPB_SCALE_H
#define GPB_SCALE_H

#include "dispatch/call.h"

/* Multiplies these rows of a column of the call's C by beta, as netlib does. If beta is 0, what was there
   does not count. Of a Hermitian C beta is real, and the element on the diagonal becomes real. column: where
   row 0 is. diagonal: the row that lies on the diagonal, which may be none of them. */
void gpb_scale_column(const gpb_call *call, gpb_scalar beta, void *column, gpb_matrix_rows rows,
                      int64_t diagonal);

#endif
