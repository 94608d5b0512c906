/* SPDX-License-Identifier: MIT */
/* Files that options name: the report's and the trace's. Nothing here allocates or locks. */
#ifndef GPB_OUTPUT_H
#define GPB_OUTPUT_H

/* Opens the file for writing, empty. %p in its name is the process's number; a relative name counts from
   where the program began. The descriptor, or -errno. */
int gpb_output_open(const char *wanted);
/* Why that failed, as a phrase. failure: an errno. */
const char *gpb_output_reason(int failure);

#endif
