/* SPDX-License-Identifier: MIT */
/* What is kept of programs between their runs, as a text. */
#ifndef GPB_HISTORY_FILE_H
#define GPB_HISTORY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/start.h"

enum { GPB_HISTORY_PROGRAMS = 256, GPB_HISTORY_FILE_BYTES = 32768 };

typedef struct gpb_history_file {
    /* What starting the GPU took, and how much of the host's work was lost meanwhile, seconds; 0: unknown.
       [1]: in a process that has a context already. */
    double start_s[2], lost_s[2];
    int programs;
    struct gpb_history_row {
        uint64_t program;        /* a hash: the file does not tell what was run */
        gpb_history runs;
    } row[GPB_HISTORY_PROGRAMS]; /* the latest first */
} gpb_history_file;

/* Prints the text. Returns its length, or 0 if `size` is too small. */
size_t gpb_history_file_print(const gpb_history_file *kept, char *text, size_t size);
/* Reads such a text. False, and *kept unchanged, unless every line is valid. */
bool gpb_history_file_parse(gpb_history_file *kept, const char *text, size_t length);
/* What is kept of that program; all zero if nothing is. */
gpb_history gpb_history_file_find(const gpb_history_file *kept, uint64_t program);
/* Puts the program first. If the table is full, the oldest goes. */
void gpb_history_file_put(gpb_history_file *kept, uint64_t program, gpb_history runs);

#endif
