/* SPDX-License-Identifier: MIT */
/* What a failed GPU run left undone, computed by the host BLAS. */
#ifndef GPB_REPAIR_H
#define GPB_REPAIR_H

#include "src/run/run.h"

/* Computes the part of C that *progress does not name as home. Operands on a GPU are fetched and C is brought back; false if that cannot
   be. */
bool gpb_repair(const gpb_call *call, const gpb_plan *plan, const gpb_facts *facts, const gpb_progress *progress);

#endif
