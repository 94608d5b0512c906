/* SPDX-License-Identifier: MIT */
/* Texts of lines; see lines.h. */
#include "src/learn/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gpb_lines_put(gpb_lines_page *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
    va_end(arguments);
    to->used = length < 0 || (size_t)length >= to->size - to->used ? to->size - 1 : to->used + (size_t)length;
}

size_t gpb_lines_length(const gpb_lines_page *page) { return page->used + 1 < page->size ? page->used : 0; }

char *gpb_lines_next(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (!end) return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

const char *gpb_lines_after(const char *line, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* A number of at most 18 digits. Returns what follows, or NULL. */
static const char *read_number(const char *at, int64_t *number)
{
    const char *begin = at;
    for (*number = 0; *at >= '0' && *at <= '9' && at - begin < 18; at++) *number = *number * 10 + (*at - '0');
    return at == begin ? NULL : at;
}

bool gpb_lines_numbers(const char *at, int64_t *number, int count)
{
    for (int i = 0; i < count; i++) {
        at = read_number(at, &number[i]);
        if (!at || *at != (i + 1 < count ? ' ' : 0)) return false;
        at++;
    }
    return true;
}
