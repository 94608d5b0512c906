/* SPDX-License-Identifier: MIT */
/* Lines on stderr; see log.h. */
#include "src/service/log.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/service/option.h"

#define LINE 1024
#define WARNINGS 128

/* In the C locale, because the program's own may have a decimal comma, and readers of the trace expect a
   point. (glibc returns its one "C" object, so nothing is allocated.) */
static int format_in_c(char *to, size_t room, const char *format, va_list arguments)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    int wanted = vsnprintf(to, room, format, arguments);
    if (before) uselocale(before);
    if (c) freelocale(c);
    return wanted;
}

/* One write, unless a signal or a full pipe interrupts it. False: the pipe has no reader any more. */
static bool write_all(const char *line, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = write(STDERR_FILENO, line + done, length - done);
        if (count > 0) done += (size_t)count;
        else if (count == 0 || errno != EINTR) return errno != EPIPE;
    }
    return true;
}

/* A SIGPIPE for a line that the program did not write would end the program. SIGPIPE is sent to the thread
   that writes. So it is blocked in this thread, and if the write raised one it is removed, unless one was
   already pending. write(2) is a cancellation point, but a BLAS call must not be one. */
static void write_line(const char *format, va_list arguments)
{
    char line[LINE] = "gpublas: ";
    int before = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    size_t length = strlen(line), room = sizeof line - length;
    int wanted = format_in_c(line + length, room, format, arguments);
    length += wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1;
    line[length++] = '\n';                           /* replaces the final zero */
    sigset_t broken, mask, waiting;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigemptyset(&waiting);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &broken, &mask);
    if (!write_all(line, length) && !sigismember(&waiting, SIGPIPE))
        while (sigtimedwait(&broken, NULL, &(struct timespec){ 0, 0 }) < 0 && errno == EINTR) { }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_setcancelstate(cancel, NULL);
    errno = before;
}

/* True for the first call with this text. If the table is full it returns false, because a lost warning is
   better than a flood. */
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
