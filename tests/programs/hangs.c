/* SPDX-License-Identifier: MIT */
/* Preloaded: a file system that hangs for ten minutes, for every path that contains the word in HANGS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_for(const char *path)
{
    const char *word = getenv("HANGS");
    if (word && strstr(path, word)) sleep(600);
}

int open(const char *path, int flags, int mode)
{
    static int (*next)(const char *, int, int);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "open");
    wait_for(path);
    return next(path, flags, mode);
}

int mkostemp(char *path, int flags)
{
    static int (*next)(char *, int);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "mkostemp");
    wait_for(path);
    return next(path, flags);
}

int mkdir(const char *path, mode_t mode)
{
    static int (*next)(const char *, mode_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "mkdir");
    wait_for(path);
    return next(path, mode);
}
