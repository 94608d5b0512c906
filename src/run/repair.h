/* SPDX-License-Identifier: MIT */
/* The host BLAS computes what a failed GPU run left undone. */
#ifndef GPB_REPAIR_H
#define GPB_REPAIR_H

#include <stdbool.h>

#include "src/run/job.h"

/* Computes the part of the job's C that its progress does not count as home. Fetches operands from a GPU and
   brings C back; false if that is not possible. */
bool gpb_repair(const gpb_job *job);

#endif
