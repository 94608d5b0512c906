/* SPDX-License-Identifier: MIT */
/* See output.h. */
#include "src/service/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "src/service/descriptor.h"
#include "src/service/option.h"

enum { PATH = 4096 };

static char folder[PATH];                    /* the program may go elsewhere before it ends */

__attribute__((constructor)) static void note_folder(void)
{
    if (!gpb_option_reports() && !gpb_option_traces()) return;
    if (!getcwd(folder, sizeof folder)) *folder = 0;
}

/* False: it is too long. */
static bool make_path(char *path, size_t size, const char *wanted)
{
    size_t used = 0;
    if (*wanted != '/' && *folder) used = (size_t)snprintf(path, size, "%s/", folder);
    for (; *wanted && used < size; wanted++) {
        const bool number = wanted[0] == '%' && wanted[1] == 'p';
        used += (size_t)(number ? snprintf(path + used, size - used, "%ld", (long)getpid())
                                : snprintf(path + used, size - used, "%c", *wanted));
        wanted += number;
    }
    return used < size;
}

/* O_NONBLOCK, because a pipe that nobody reads must not hold up the program or its end. */
int gpb_output_open(const char *wanted)
{
    char path[PATH];
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NONBLOCK;
    if (!make_path(path, sizeof path, wanted)) return -ENAMETOOLONG;
    const int fd = gpb_descriptor_open(path, flags, 0666);
    return fd < 0 ? -errno : fd;
}

/* strerror may translate, and so allocate. */
const char *gpb_output_reason(int failure)
{
    switch (failure) {
    case EACCES: case EROFS: case EPERM: return "not allowed";
    case ENOENT: case ENOTDIR: return "no such folder";
    case EISDIR: return "it is a folder";
    case ENOSPC: case EDQUOT: return "the disk is full";
    case EFBIG: return "the file may not grow so large";
    case ENAMETOOLONG: return "its name is too long";
    default: return "it cannot be written";
    }
}
