/* SPDX-License-Identifier: MIT */
/* The cores that this process may use. */
#ifndef GPB_CORES_H
#define GPB_CORES_H

#include <sched.h>

/* Their number: the smaller of the process's affinity and its cgroup quota. At least 1; found once. */
int gpb_cores(void);
/* The process's affinity: the larger of the main thread's and this thread's, because OpenMP may have bound
   this one to a single core. Returns its size; 0: unknown. */
int gpb_cores_affinity(cpu_set_t *set);
/* For a forked child: it may be in another cgroup. */
void gpb_cores_in_child(void);

#endif
