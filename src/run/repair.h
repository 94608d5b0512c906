/* SPDX-License-Identifier: MIT */
/* What a failed GPU run left undone, computed by the host BLAS. */
#ifndef GPB_REPAIR_H
#define GPB_REPAIR_H

#include <stdbool.h>

#include "src/run/job.h"

/* Computes the part of the job's C that its progress does not name as home. Operands on a GPU are fetched and C is brought back; false if that cannot
   be. */
bool gpb_repair(const gpb_job *job);

#endif
