/* SPDX-License-Identifier: MIT */
/* Lines on stderr; see log.h. */
#include "src/service/log.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/service/option.h"

#define LINE 1024
#define WARNINGS 128
#define KEPT 16

/* In the C locale, because the program's own may have a decimal comma, and readers of the trace expect a
   point. (glibc returns its one "C" object, so nothing is allocated.) */
int gpb_log_print(char *to, size_t room, const char *format, va_list arguments)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    int wanted = vsnprintf(to, room, format, arguments);
    if (before) uselocale(before);
    if (c) freelocale(c);
    return wanted;
}

/* One write, unless a signal or a full pipe interrupts it. 0, or an errno. */
static int write_all(int fd, const char *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = write(fd, bytes + done, length - done);
        if (count > 0) done += (size_t)count;
        else if (count == 0 || errno != EINTR) return count == 0 ? EIO : errno;
    }
    return 0;
}

/* A SIGPIPE for a line that the program did not write would end the program, and so would SIGXFSZ for a file
   that may not grow. Both are sent to the thread that writes. So they are blocked in this thread, and one
   that the write raised is removed, unless it was already pending. write(2) is a cancellation point, but a
   BLAS call must not be one. */
int gpb_log_write(int fd, const char *bytes, size_t length)
{
    int before = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sigset_t ours, mask, waiting;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&waiting);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &ours, &mask);
    const int failed = write_all(fd, bytes, length);
    const int raised = failed == EPIPE ? SIGPIPE : failed == EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&waiting, raised)) {
        sigemptyset(&ours);
        sigaddset(&ours, raised);
        while (sigtimedwait(&ours, NULL, &(struct timespec){ 0, 0 }) < 0 && errno == EINTR) { }
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_setcancelstate(cancel, NULL);
    errno = before;
    return failed;
}

/* ---- the file that stderr was when the library was loaded. A program may have been started without one, or
   have closed it, and then a file of its own has got that number. */

enum { UNKNOWN, NONE, SOME };
static atomic_int noted = UNKNOWN;
static _Atomic uint64_t noted_device, noted_file;

void gpb_log_note_stderr(void)
{
    struct stat now;
    const bool some = fstat(STDERR_FILENO, &now) == 0;
    atomic_store(&noted_device, some ? (uint64_t)now.st_dev : 0);
    atomic_store(&noted_file, some ? (uint64_t)now.st_ino : 0);
    atomic_store(&noted, some ? SOME : NONE);
}

/* Before all other constructors of ours, which may have something to say. */
__attribute__((constructor(101))) static void begin(void)
{
    const int before = errno;
    gpb_log_note_stderr();
    errno = before;
}

/* A constructor of the program's may call us before ours have run. */
bool gpb_log_is_heard(void)
{
    struct stat now;
    if (atomic_load(&noted) == UNKNOWN) begin();
    return atomic_load(&noted) == SOME && fstat(STDERR_FILENO, &now) == 0
           && (uint64_t)now.st_dev == atomic_load(&noted_device)
           && (uint64_t)now.st_ino == atomic_load(&noted_file);
}

/* ---- lines */

static char kept[KEPT][LINE / 4];
static atomic_bool is_kept[KEPT];
static atomic_int given;

static void keep(const char *text, size_t length)
{
    const int index = atomic_fetch_add(&given, 1);
    if (index < 0 || index >= KEPT) return;
    snprintf(kept[index], sizeof kept[index], "%.*s", (int)length, text);
    atomic_store(&is_kept[index], true);
}

const char *gpb_log_warning(int index)
{
    return index < KEPT && atomic_load(&is_kept[index]) ? kept[index] : NULL;
}

void gpb_log_in_child(void)
{
    for (int i = 0; i < KEPT; i++) atomic_store(&is_kept[i], false);
    atomic_store(&given, 0);
}

static void write_line(bool warning, const char *format, va_list arguments)
{
    char line[LINE] = "gpublas: ";
    const size_t begin = strlen(line), room = sizeof line - begin;
    const int before = errno, wanted = gpb_log_print(line + begin, room, format, arguments);
    size_t length = begin + (wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1);
    if (warning) keep(line + begin, length - begin);
    line[length++] = '\n';                           /* replaces the final zero */
    if (gpb_log_is_heard()) gpb_log_write(STDERR_FILENO, line, length);
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
    write_line(true, format, arguments);
    va_end(arguments);
}

void gpb_log_warn_each(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(true, format, arguments);
    va_end(arguments);
}

void gpb_log_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(false, format, arguments);
    va_end(arguments);
}

void gpb_log_debug(const char *format, ...)
{
    if (gpb_option_number(GPB_OPTION_VERBOSE) < 2) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(false, format, arguments);
    va_end(arguments);
}
