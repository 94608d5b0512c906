/* SPDX-License-Identifier: MIT */
/* Files of ours; see file.h. */
#include "src/learn/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/service/descriptor.h"
#include "src/service/log.h"

static size_t read_file(int file, char *text, size_t size)
{
    size_t used = 0;
    for (ssize_t count; used < size && (count = read(file, text + used, size - used)) != 0;) {
        if (count > 0) used += (size_t)count;
        else if (errno != EINTR) return 0;
    }
    return used;
}

int gpb_file_open(const char *path, int flags, size_t *bytes)
{
    struct stat about;
    const int file = gpb_descriptor_open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    const bool regular = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    const bool safe = regular && about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
    *bytes = safe ? (size_t)about.st_size : 0;
    if (safe || file < 0) return file;
    close(file);
    return -1;
}

char *gpb_file_read(const char *path, size_t bytes, size_t *length)
{
    size_t size;
    const int file = gpb_file_open(path, O_RDONLY, &size);
    char *text = file >= 0 && size < bytes ? malloc(bytes) : NULL;
    *length = text ? read_file(file, text, bytes) : 0;
    if (file >= 0) close(file);
    if (*length > 0 && *length < bytes) return text;
    free(text);
    return NULL;
}

/* Makes the path's folder unless it exists, and the folder around it: ~/.cache/gpublas. */
static void make_folders(const char *path)
{
    char folder[4096];
    const char *last = strrchr(path, '/');
    if (!last || last == path || (size_t)(last - path) >= sizeof folder) return;
    memcpy(folder, path, (size_t)(last - path));
    folder[last - path] = 0;
    if (mkdir(folder, 0700) == 0 || errno != ENOENT) return;
    char *above = strrchr(folder, '/');
    if (!above || above == folder) return;
    *above = 0;
    mkdir(folder, 0700);
    *above = '/';
    mkdir(folder, 0700);
}

const char *gpb_file_replace(const char *path, const char *text, size_t length)
{
    char temporary[4096];
    /* A new name each time, so that the file of a killed process does not block another. */
    const int named = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (named < 0 || (size_t)named >= sizeof temporary) return "its path is too long";
    make_folders(path);
    const int made = mkostemp(temporary, O_CLOEXEC), file = gpb_descriptor_above(made);
    if (made >= 0 && file < 0) unlink(temporary);
    if (file < 0) return "cannot be created";
    bool written = gpb_log_write(file, text, length) == 0;
    written &= close(file) == 0;
    const char *failure = written ? NULL : "cannot be written";
    if (!failure && rename(temporary, path)) failure = "cannot be renamed";
    if (failure) unlink(temporary);
    return failure;
}
