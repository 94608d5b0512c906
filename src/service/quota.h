/* SPDX-License-Identifier: MIT */
/* The processor time that the process's cgroups grant it. */
#ifndef GPB_QUOTA_H
#define GPB_QUOTA_H

/* The smallest quota of the process's cgroup and the groups above it, version 1 or 2, in cores; INT_MAX: none
   can be read. root: "", or for tests the folder that contains proc and sys. */
int gpb_quota_cores(const char *root);

#endif
