/* SPDX-License-Identifier: MIT */
/* The text of what is kept of programs; see history_file.h. It has whole numbers only:

       gpublas programs 2
       start_us <microseconds without a context> <with one>
       lost_us <the same of the host's work that was lost>
       program <hash, two numbers of 32 bits> <runs> <quiet runs> <total, microseconds> <late, two times>
       end */
#include "src/learn/history_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/learn/lines.h"

#define TITLE "gpublas programs 2"
#define MAX_US INT64_C(1000000000000)    /* eleven days; what is more is no time */

static int64_t microseconds(double seconds) { return (int64_t)(1e6 * seconds + 0.5); }

static void put_pair(gpb_lines_page *to, const char *name, const double seconds[2])
{
    gpb_lines_put(to, "%s %" PRId64 " %" PRId64 "\n", name, microseconds(seconds[0]),
                  microseconds(seconds[1]));
}

size_t gpb_history_file_print(const gpb_history_file *kept, char *text, size_t size)
{
    gpb_lines_page to = { text, 0, size };
    gpb_lines_put(&to, TITLE "\n");
    put_pair(&to, "start_us", kept->start_s);
    put_pair(&to, "lost_us", kept->lost_s);
    for (int i = 0; i < kept->programs; i++) {
        const struct gpb_history_row *row = &kept->row[i];
        gpb_lines_put(&to, "program %" PRIu32 " %" PRIu32 " %d %d %" PRId64 " %" PRId64 " %" PRId64 "\n",
                      (uint32_t)(row->program >> 32), (uint32_t)row->program, row->runs.runs,
                      row->runs.quiet_runs, microseconds(row->runs.total_s),
                      microseconds(row->runs.late_s[0]), microseconds(row->runs.late_s[1]));
    }
    gpb_lines_put(&to, "end\n");
    return gpb_lines_length(&to);
}

static bool read_pair(const char *line, const char *name, double seconds[2])
{
    int64_t number[2];
    const char *rest = gpb_lines_after(line, name);
    if (!rest || !gpb_lines_numbers(rest, number, 2) || number[0] > MAX_US || number[1] > MAX_US)
        return false;
    for (int i = 0; i < 2; i++) seconds[i] = (double)number[i] / 1e6;
    return true;
}

static bool read_program(gpb_history_file *kept, const char *line)
{
    enum { HIGH, LOW, RUNS, QUIET_RUNS, TOTAL, LATE, NUMBERS = LATE + GPB_START_MOMENTS };
    int64_t number[NUMBERS];
    const char *rest = gpb_lines_after(line, "program");
    if (!rest || !gpb_lines_numbers(rest, number, NUMBERS) || kept->programs == GPB_HISTORY_PROGRAMS)
        return false;
    if (number[HIGH] > UINT32_MAX || number[LOW] > UINT32_MAX) return false;
    if (number[RUNS] < 1 || number[RUNS] > GPB_START_MAX_RUNS) return false;
    if (number[QUIET_RUNS] > number[RUNS] || number[TOTAL] > MAX_US) return false;
    gpb_history runs = { .runs = (int)number[RUNS], .quiet_runs = (int)number[QUIET_RUNS],
                         .total_s = (double)number[TOTAL] / 1e6 };
    for (int at = 0; at < GPB_START_MOMENTS; at++) {
        if (number[LATE + at] > number[TOTAL]) return false;
        runs.late_s[at] = (double)number[LATE + at] / 1e6;
    }
    kept->row[kept->programs++] = (struct gpb_history_row){
        (uint64_t)number[HIGH] << 32 | (uint64_t)number[LOW], runs };
    return true;
}

static bool read_all(gpb_history_file *kept, char *text)
{
    char *line = gpb_lines_next(&text);
    if (!line || strcmp(line, TITLE) != 0) return false;
    while ((line = gpb_lines_next(&text)) && strcmp(line, "end") != 0)
        if (!read_pair(line, "start_us", kept->start_s) && !read_pair(line, "lost_us", kept->lost_s)
            && !read_program(kept, line))
            return false;
    return line && !*text;
}

bool gpb_history_file_parse(gpb_history_file *kept, const char *text, size_t length)
{
    gpb_history_file *read = calloc(1, sizeof *read);
    char *copy = strndup(text, length);
    const bool good = read && copy && strlen(copy) == length && read_all(read, copy);
    if (good) *kept = *read;
    free(copy);
    free(read);
    return good;
}

static int place_of(const gpb_history_file *kept, uint64_t program)
{
    int i = 0;
    while (i < kept->programs && kept->row[i].program != program) i++;
    return i;
}

gpb_history gpb_history_file_find(const gpb_history_file *kept, uint64_t program)
{
    const int at = place_of(kept, program);
    return at < kept->programs ? kept->row[at].runs : (gpb_history){ 0 };
}

void gpb_history_file_put(gpb_history_file *kept, uint64_t program, gpb_history runs)
{
    int at = place_of(kept, program);
    if (at == kept->programs && at < GPB_HISTORY_PROGRAMS) kept->programs++;
    if (at == GPB_HISTORY_PROGRAMS) at--;
    memmove(&kept->row[1], &kept->row[0], (size_t)at * sizeof *kept->row);
    kept->row[0] = (struct gpb_history_row){ program, runs };
}
