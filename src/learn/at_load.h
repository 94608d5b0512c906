/* SPDX-License-Identifier: MIT */
/* Programs that have the GPU started when they are loaded. Every process asks that, so the answer must cost
   microseconds and may not hang. Hence it does not come from the history, which is in a home folder, but from
   a copy of its conclusions in shared memory (/dev/shm), which a reboot empties and later runs fill again. */
#ifndef GPB_AT_LOAD_H
#define GPB_AT_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* path: the file of this user's programs. program: a hash of the program and of its history's path. False
   also if there is no such file, or if another user might have written it. */
bool gpb_at_load_wanted(const char *path, uint64_t program);
/* Of programs that share a slot of the file the last one has it. */
void gpb_at_load_want(const char *path, uint64_t program, bool wanted);

#endif
