/* SPDX-License-Identifier: MIT */
/* Files of ours, which only their user may write. */
#ifndef GPB_FILE_H
#define GPB_FILE_H

#include <stddef.h>

/* Opens the file with those flags of open(2), and never waits for it. Returns -1 unless it is regular,
   belongs to the effective user, and is writable by nobody else. *bytes: its size. */
int gpb_file_open(const char *path, int flags, size_t *bytes);
/* Reads the text of such a file, which the caller frees. NULL unless it has fewer than `bytes` bytes. */
char *gpb_file_read(const char *path, size_t bytes, size_t *length);
/* Writes the file so that a reader finds either the old or the new one, and that only the user may read it.
   Makes the path's folder and the one around it if need be. Returns NULL, or what failed. */
const char *gpb_file_replace(const char *path, const char *text, size_t length);

#endif
