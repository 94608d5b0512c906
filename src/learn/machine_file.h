/* SPDX-License-Identifier: MIT */
/* gpb_machine as a file from which another process on the same machine may begin. */
#ifndef GPB_MACHINE_FILE_H
#define GPB_MACHINE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/learn/machine.h"

enum { GPB_MACHINE_FILE_BYTES = 524288, GPB_MACHINE_KEY_BYTES = 512 };

/* Prints the machine as text, one fact per line. key: the machine's name, one line. Returns the length, or 0
   if `size` is too small. */
size_t gpb_machine_file_print(gpb_machine *machine, const char *key, char *text, size_t size);
/* Reads such a text into *machine. False, and *machine unchanged, unless the text is for that key and every
   line is valid. */
bool gpb_machine_file_parse(gpb_machine *machine, const char *key, const char *text, size_t length);

/* Prints the machine into that file (gpb_file_replace). Returns NULL, or what failed. */
const char *gpb_machine_file_save(gpb_machine *machine, const char *key, const char *path);

#endif
