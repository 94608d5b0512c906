/* SPDX-License-Identifier: MIT */
/* The machine's file; see machine_file.h. Its text has whole numbers only, because a program may have set a
   locale with decimal commas:

       gpublas calibration 1
       machine <key>
       dma_mbs 50900
       host <class of threads> <class of calls: learn.h> <calls seen> <ratio in 2^-16>
       gpu <table> <class of calls> <calls seen> <ratio in 2^-16>
       end

   Tables of the GPU: 0 operands in host memory, 1 in GPU memory, 2 in host memory under contention. */
#include "src/learn/machine_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TITLE "gpublas calibration 1"

/* The single figures, with the bounds within which a value is believed. */
static const struct figure { const char *name; size_t place; int64_t min, max; } figures[] = {
    { "dma_mbs", offsetof(gpb_machine, dma_mbs), 100, 2000000 },
    { "core_mbs", offsetof(gpb_machine, core_mbs), 100, 500000 },
    { "launch_ns", offsetof(gpb_machine, launch_ns), 500, 10000000 },
};
enum { FIGURES = sizeof figures / sizeof *figures };

static _Atomic int64_t *figure_of(gpb_machine *machine, int i)
{
    return (_Atomic int64_t *)(void *)((char *)machine + figures[i].place);
}

/* ---- writing */

typedef struct page {
    char *text;
    size_t used, size;
} page;

__attribute__((format(printf, 2, 3))) static void put(page *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
    va_end(arguments);
    to->used = length < 0 || (size_t)length >= to->size - to->used ? to->size - 1 : to->used + (size_t)length;
}

static void put_table(page *to, const char *name, int which, const gpb_learn *learnt)
{
    for (int class = 0; class < GPB_LEARN_CLASSES; class++) {
        const gpb_learn_cell cell = atomic_load_explicit(&learnt->cell[class], memory_order_relaxed);
        if (cell.seen >= 2) put(to, "%s %d %d %d %" PRIu32 "\n", name, which, class, cell.seen, cell.ratio);
    }
}

size_t gpb_machine_file_print(gpb_machine *machine, const char *key, char *text, size_t size)
{
    page to = { text, 0, size };
    put(&to, TITLE "\nmachine %s\n", key);
    for (int i = 0; i < FIGURES; i++) {
        const int64_t value = atomic_load(figure_of(machine, i));
        if (value) put(&to, "%s %" PRId64 "\n", figures[i].name, value);
    }
    for (int i = 0; i < GPB_MACHINE_THREADS; i++) put_table(&to, "host", i, &machine->host[i]);
    for (int i = 0; i < GPB_MACHINE_GPU; i++) put_table(&to, "gpu", i, &machine->gpu[i]);
    put(&to, "end\n");
    return to.used + 1 < to.size ? to.used : 0;
}

/* ---- reading: a text is believed only if it parses to the last character */

/* A number of at most 18 digits. Returns what follows, or NULL. */
static const char *read_number(const char *at, int64_t *number)
{
    const char *begin = at;
    for (*number = 0; *at >= '0' && *at <= '9' && at - begin < 18; at++) *number = *number * 10 + (*at - '0');
    return at == begin ? NULL : at;
}

/* `count` numbers with one space between two, and then the line's end. */
static bool read_numbers(const char *at, int64_t *number, int count)
{
    for (int i = 0; i < count; i++) {
        at = read_number(at, &number[i]);
        if (!at || *at != (i + 1 < count ? ' ' : 0)) return false;
        at++;
    }
    return true;
}

/* The text after `name` and a space, if the line begins so; else NULL. */
static const char *after(const char *line, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static bool read_figure(gpb_machine *machine, const char *line)
{
    for (int i = 0; i < FIGURES; i++) {
        int64_t value;
        const char *rest = after(line, figures[i].name);
        if (!rest) continue;
        if (!read_numbers(rest, &value, 1)) return false;
        if (value < figures[i].min || value > figures[i].max) return false;
        atomic_store(figure_of(machine, i), value);
        return true;
    }
    return false;
}

static bool read_cell(gpb_machine *machine, const char *line)
{
    int64_t number[4];
    const bool host = after(line, "host") != NULL;
    const char *rest = after(line, host ? "host" : "gpu");
    if (!rest || !read_numbers(rest, number, 4)) return false;
    const int tables = host ? GPB_MACHINE_THREADS : GPB_MACHINE_GPU;
    if (number[0] >= tables || number[1] >= GPB_LEARN_CLASSES) return false;
    if (number[2] > GPB_LEARN_SURE || number[3] > UINT32_MAX) return false;
    gpb_learn *table = host ? &machine->host[number[0]] : &machine->gpu[number[0]];
    const gpb_learn_cell cell = { .ratio = (uint32_t)number[3], .seen = (uint32_t)number[2] };
    return gpb_learn_set(table, (int)number[1], cell);
}

/* The next line, in which a zero has replaced the newline; NULL after the last line, or if that has no
   newline. */
static char *next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (!end) return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

static bool read_all(gpb_machine *machine, const char *key, char *text)
{
    char *line = next_line(&text);
    if (!line || strcmp(line, TITLE) != 0 || !(line = next_line(&text))) return false;
    const char *name = after(line, "machine");
    if (!name || strcmp(name, key) != 0) return false;
    while ((line = next_line(&text)) && strcmp(line, "end") != 0)
        if (!read_figure(machine, line) && !read_cell(machine, line)) return false;
    return line && !*text;
}

/* Cells that other threads have learnt meanwhile are kept. */
static void adopt_table(gpb_learn *to, gpb_learn *from)
{
    for (int i = 0; i < GPB_LEARN_CLASSES; i++) {
        const gpb_learn_cell cell = atomic_load(&from->cell[i]), own = atomic_load(&to->cell[i]);
        if (cell.seen >= 2 && own.seen < 2) atomic_store(&to->cell[i], cell);
    }
}

bool gpb_machine_file_parse(gpb_machine *machine, const char *key, const char *text, size_t length)
{
    gpb_machine *read = calloc(1, sizeof *read);
    char *copy = strndup(text, length);
    const bool good = read && copy && strlen(copy) == length && read_all(read, key, copy);
    if (good) {
        for (int i = 0; i < FIGURES; i++) {
            const int64_t value = atomic_load(figure_of(read, i));
            if (value) atomic_store(figure_of(machine, i), value);
        }
        for (int i = 0; i < GPB_MACHINE_THREADS; i++) adopt_table(&machine->host[i], &read->host[i]);
        for (int i = 0; i < GPB_MACHINE_GPU; i++) adopt_table(&machine->gpu[i], &read->gpu[i]);
    }
    free(copy);
    free(read);
    return good;
}

/* ---- files */

static size_t read_file(int file, char *text, size_t size)
{
    size_t used = 0;
    for (ssize_t count; used < size && (count = read(file, text + used, size - used)) != 0;) {
        if (count > 0) used += (size_t)count;
        else if (errno != EINTR) return 0;
    }
    return used;
}

char *gpb_machine_file_read(const char *path, size_t *length)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const bool regular = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    const bool safe = regular && about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
    const bool good = safe && about.st_size < GPB_MACHINE_FILE_BYTES;
    char *text = good ? malloc(GPB_MACHINE_FILE_BYTES) : NULL;
    *length = text ? read_file(file, text, GPB_MACHINE_FILE_BYTES) : 0;
    if (file >= 0) close(file);
    if (*length > 0 && *length < GPB_MACHINE_FILE_BYTES) return text;
    free(text);
    return NULL;
}

static bool write_file(int file, const char *text, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = write(file, text + done, length - done);
        if (count > 0) done += (size_t)count;
        else if (count == 0 || errno != EINTR) return false;
    }
    return true;
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

const char *gpb_machine_file_save(gpb_machine *machine, const char *key, const char *path)
{
    char temporary[4096];
    char *text = malloc(GPB_MACHINE_FILE_BYTES);
    const size_t length = text ? gpb_machine_file_print(machine, key, text, GPB_MACHINE_FILE_BYTES) : 0;
    /* A new name each time, so that the file of a killed process does not block another. */
    const int named = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const bool fits = length > 0 && named >= 0 && (size_t)named < sizeof temporary;
    const char *failure = fits ? NULL : "its path or text is too long";
    if (!failure) {
        make_folders(path);
        int file = mkostemp(temporary, O_CLOEXEC);
        if (file < 0) failure = "cannot be created";
        else if (!write_file(file, text, length)) failure = "cannot be written";
        if (file >= 0 && close(file) && !failure) failure = "cannot be written";
        if (file >= 0 && !failure && rename(temporary, path)) failure = "cannot be renamed";
        if (file >= 0 && failure) unlink(temporary);
    }
    free(text);
    return failure;
}
