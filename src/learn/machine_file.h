/* SPDX-License-Identifier: MIT */
/* gpb_machine as a file that another process on the same machine may begin with. */
#ifndef GPB_MACHINE_FILE_H
#define GPB_MACHINE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/learn/machine.h"

enum { GPB_MACHINE_FILE_BYTES = 262144, GPB_MACHINE_KEY_BYTES = 512 };

/* The text, one fact a line, of a machine whose name is `key` (one line); returns its length, 0 if `size` was too little. */
size_t gpb_machine_print(gpb_machine *machine, const char *key, char *text, size_t size);
/* True, and *machine filled, if the text is of that machine and every line of it is in order; else *machine is as it was. */
bool gpb_machine_parse(gpb_machine *machine, const char *key, const char *text, size_t length);

/* The text of a regular file that belongs to the effective user, that nobody else may write, of at most GPB_MACHINE_FILE_BYTES; to be freed.
   NULL: there is none. */
char *gpb_machine_read(const char *path, size_t *length);
/* Writes it so that a reader finds the old file or the new one; makes the last folder of the path. NULL, or what failed. */
const char *gpb_machine_save(gpb_machine *machine, const char *key, const char *path);

#endif
