/* SPDX-License-Identifier: MIT */
/* Files of ours in the user's cache folder. */
#ifndef GPB_FILE_H
#define GPB_FILE_H

#include <stddef.h>

/* Reads the file's text, which the caller frees. The file must be regular, belong to the effective user, be
   writable by nobody else, and have fewer than `bytes` bytes; else NULL. */
char *gpb_file_read(const char *path, size_t bytes, size_t *length);
/* Writes the file so that a reader finds either the old or the new one, and that only the user may read it.
   Makes the path's folder and the one around it if need be. Returns NULL, or what failed. */
const char *gpb_file_replace(const char *path, const char *text, size_t length);

#endif
