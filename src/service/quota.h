/* SPDX-License-Identifier: MIT */
/* Processor time that the process's cgroups leave it. */
#ifndef GPB_QUOTA_H
#define GPB_QUOTA_H

/* Cores by the least quota of the process's cgroup and those around it, of version 1 or 2; INT_MAX: none that can be read. root: "", or (for
   tests) where proc and sys are to be found. */
int gpb_quota_cores(const char *root);

#endif
