/* SPDX-License-Identifier: MIT */
/* Files that we open. They never have the numbers of stdin, stdout and stderr: a program that was started
   without one of these, or has closed it, would write into our file, or its next file would not get the
   number that it expects. */
#ifndef GPB_DESCRIPTOR_H
#define GPB_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/* Takes a descriptor just opened, and returns one from 3 on for the same file, or -1 and errno. */
static inline int gpb_descriptor_above(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failure = errno;
    close(fd);
    errno = failure;
    return above;
}

/* open(2), with O_CLOEXEC. */
static inline int gpb_descriptor_open(const char *path, int flags, mode_t mode)
{
    return gpb_descriptor_above(open(path, flags | O_CLOEXEC, mode));
}

/* For reading; NULL: it cannot be opened. */
static inline FILE *gpb_descriptor_stream(const char *path)
{
    const int fd = gpb_descriptor_open(path, O_RDONLY, 0);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
    if (!stream && fd >= 0) close(fd);
    return stream;
}

#endif
