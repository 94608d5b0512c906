/* SPDX-License-Identifier: MIT */
/* See trace.h. */
#include "tests/gpu/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/gpu/placed.h"

static int file = -1, home = -1;

void trace_begin(void)
{
    if (file < 0) {
        file = memfd_create("trace", 0);
        home = dup(STDERR_FILENO);
    }
    fflush(stderr);
    if (file < 0 || home < 0 || ftruncate(file, 0) || lseek(file, 0, SEEK_SET)
        || dup2(file, STDERR_FILENO) < 0) {
        perror("trace");
        exit(1);
    }
    set_option("VERBOSE", "1");
}

const char *trace_end(void)
{
    static char text[4096];
    fflush(stderr);
    dup2(home, STDERR_FILENO);
    set_option("VERBOSE", NULL);             /* warnings go home again */
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return text;
}

const char *trace_value(const char *trace, const char *key, char *value, size_t size)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(trace, wanted);
    at = at ? at + strlen(wanted) : "";
    snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
    return value;
}
