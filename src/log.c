/* SPDX-License-Identifier: MIT */
/* Lines on stderr; see log.h. */
#include "src/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/option.h"

#define LINE 1024
#define WARNINGS 128

static void write_line(const char *format, va_list arguments)
{
    char line[LINE] = "gpublas: ";
    int before = errno;
    size_t length = strlen(line), room = sizeof line - length;
    int wanted = vsnprintf(line + length, room, format, arguments);
    length += wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1;
    line[length++] = '\n';                           /* in the place of the final zero */
    for (size_t done = 0; done < length;) {      /* one write, unless a signal or a full pipe cuts it */
        ssize_t count = write(STDERR_FILENO, line + done, length - done);
        if (count > 0) done += (size_t)count;
        else if (count == 0 || errno != EINTR) break;
    }
    errno = before;
}

/* True for the first caller with this text. When the table is full nothing is new: a flood is worse than a warning lost. */
static bool is_new(const char *format)
{
    static _Atomic(const char *) seen[WARNINGS];
    for (int i = 0; i < WARNINGS; i++) {
        const char *known = NULL;
        if (atomic_compare_exchange_strong(&seen[i], &known, format)) return true;
        if (strcmp(known, format) == 0) return false;
    }
    return false;
}

void gpb_log_warn(const char *format, ...)
{
    if (!is_new(format)) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

void gpb_log_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

void gpb_log_debug(const char *format, ...)
{
    if (gpb_option_number(GPB_OPTION_VERBOSE) < 2) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}
