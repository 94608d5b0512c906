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

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/learn/file.h"
#include "src/learn/lines.h"

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

static void put_table(gpb_lines_page *to, const char *name, int which, const gpb_learn *learnt)
{
    for (int class = 0; class < GPB_LEARN_CLASSES; class++) {
        const gpb_learn_cell cell = atomic_load_explicit(&learnt->cell[class], memory_order_relaxed);
        if (cell.seen >= 2)
            gpb_lines_put(to, "%s %d %d %d %" PRIu32 "\n", name, which, class, cell.seen, cell.ratio);
    }
}

size_t gpb_machine_file_print(gpb_machine *machine, const char *key, char *text, size_t size)
{
    gpb_lines_page to = { text, 0, size };
    gpb_lines_put(&to, TITLE "\nmachine %s\n", key);
    for (int i = 0; i < FIGURES; i++) {
        const int64_t value = atomic_load(figure_of(machine, i));
        if (value) gpb_lines_put(&to, "%s %" PRId64 "\n", figures[i].name, value);
    }
    for (int i = 0; i < GPB_MACHINE_THREADS; i++) put_table(&to, "host", i, &machine->host[i]);
    for (int i = 0; i < GPB_MACHINE_GPU; i++) put_table(&to, "gpu", i, &machine->gpu[i]);
    gpb_lines_put(&to, "end\n");
    return gpb_lines_length(&to);
}

/* ---- reading: a text is believed only if it parses to the last character */

static bool read_figure(gpb_machine *machine, const char *line)
{
    for (int i = 0; i < FIGURES; i++) {
        int64_t value;
        const char *rest = gpb_lines_after(line, figures[i].name);
        if (!rest) continue;
        if (!gpb_lines_numbers(rest, &value, 1)) return false;
        if (value < figures[i].min || value > figures[i].max) return false;
        atomic_store(figure_of(machine, i), value);
        return true;
    }
    return false;
}

static bool read_cell(gpb_machine *machine, const char *line)
{
    int64_t number[4];
    const bool host = gpb_lines_after(line, "host") != NULL;
    const char *rest = gpb_lines_after(line, host ? "host" : "gpu");
    if (!rest || !gpb_lines_numbers(rest, number, 4)) return false;
    const int tables = host ? GPB_MACHINE_THREADS : GPB_MACHINE_GPU;
    if (number[0] >= tables || number[1] >= GPB_LEARN_CLASSES) return false;
    if (number[2] > GPB_LEARN_SURE || number[3] > UINT32_MAX) return false;
    gpb_learn *table = host ? &machine->host[number[0]] : &machine->gpu[number[0]];
    const gpb_learn_cell cell = { .ratio = (uint32_t)number[3], .seen = (uint32_t)number[2] };
    return gpb_learn_set(table, (int)number[1], cell);
}

static bool read_all(gpb_machine *machine, const char *key, char *text)
{
    char *line = gpb_lines_next(&text);
    if (!line || strcmp(line, TITLE) != 0 || !(line = gpb_lines_next(&text))) return false;
    const char *name = gpb_lines_after(line, "machine");
    if (!name || strcmp(name, key) != 0) return false;
    while ((line = gpb_lines_next(&text)) && strcmp(line, "end") != 0)
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

/* ---- the file */

const char *gpb_machine_file_save(gpb_machine *machine, const char *key, const char *path)
{
    char *text = malloc(GPB_MACHINE_FILE_BYTES);
    const size_t length = text ? gpb_machine_file_print(machine, key, text, GPB_MACHINE_FILE_BYTES) : 0;
    const char *failure = length > 0 ? gpb_file_replace(path, text, length) : "its text is too long";
    free(text);
    return failure;
}
