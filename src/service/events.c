/* SPDX-License-Identifier: MIT */
/* See events.h. Events gather in pages, one for each of stats.h's shards, so that a call pays for no write. A
   page that another thread is writing is not waited for; the next one is taken. The file is a JSON array: it
   ends with the program, and readers of this format also take an array that does not end. */
#include "src/service/events.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/service/clock.h"
#include "src/service/log.h"
#include "src/service/output.h"
#include "src/service/stats.h"
#include "src/service/text.h"
#include "src/service/traps.h"

enum { PAGE = 16384, EVENT = 1024, UNOPENED = -1, OPENING = -2, CLOSED = -3 };

#define WAIT_S 0.1
#define END_S  1.0

static struct page {
    _Alignas(64) atomic_flag taken;
    atomic_size_t used;                      /* so many bytes are whole events, at every moment */
    char bytes[PAGE];
} pages[GPB_STATS_SHARDS];

static atomic_int file = UNOPENED;
static struct stat opened;
static atomic_int process;                   /* its number, once there was an event */
static atomic_uint lost;                     /* events for which there was no page */
/* This thread's number, for which the system need not be asked each time; 0: the file does not have its name
   yet. */
static _Thread_local int number __attribute__((tls_model("initial-exec")));

/* The length. No text has a fraction in it that a locale could write with a comma. */
__attribute__((format(printf, 2, 3))) static size_t print(char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(text, EVENT, format, arguments);
    va_end(arguments);
    return wanted < 0 || wanted >= EVENT ? 0 : (size_t)wanted;
}

/* As it may stand in a JSON string. */
static void copy_name(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", name);
    for (; *to; to++)
        if (*to < ' ' || *to > '~' || *to == '"' || *to == '\\') *to = '?';
}

static void fail(int failure)
{
    atomic_store(&file, CLOSED);
    gpb_log_warn("GPUBLAS_TRACE=%s: %s", gpb_option_text(GPB_OPTION_TRACE), gpb_output_reason(failure));
}

/* The file with its first event. The descriptor, or CLOSED. */
static int open_file(void)
{
    char text[EVENT], name[256];
    copy_name(name, sizeof name, program_invocation_short_name);
    const int fd = gpb_output_open(gpb_option_text(GPB_OPTION_TRACE));
    if (fd >= 0) fstat(fd, &opened);
    const size_t length = print(text, "[\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %ld, "
                                "\"args\": {\"name\": \"%s\"}}", (long)getpid(), name);
    const int failed = fd < 0 ? -fd : gpb_log_write(fd, text, length);
    if (failed) fail(failed);
    else atomic_store(&file, fd);
    return failed ? CLOSED : fd;
}

/* The descriptor, or < 0. The first event opens the file, and no signal handler interrupts that. Others wait
   for it, but no longer than most_s. Nobody is cancelled here, because OPENING would stay for ever, or a page
   taken. */
static int descriptor(double most_s)
{
    const double until_s = gpb_clock_s() + most_s;
    sigset_t all, mask;
    int fd = UNOPENED, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    if (atomic_compare_exchange_strong(&file, &fd, OPENING)) fd = open_file();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    while (fd == OPENING && gpb_clock_s() < until_s) {
        usleep(50);
        fd = atomic_load(&file);
    }
    pthread_setcancelstate(cancel, NULL);
    return fd;
}

/* If the program closed the file, one of its own may have got that number. */
static bool is_ours(int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
}

/* The page is this thread's. */
static void empty(struct page *page, int fd)
{
    const size_t length = atomic_exchange(&page->used, 0);
    const int failed = is_ours(fd) ? gpb_log_write(fd, page->bytes, length) : 0;
    if (failed) fail(failed);
}

static void flush(struct page *page)
{
    int fd = atomic_load(&file);
    if (fd == UNOPENED || fd == OPENING) fd = descriptor(WAIT_S);
    if (fd >= 0) empty(page, fd);
    else if (fd == CLOSED) atomic_store(&page->used, 0);
}

static struct page *take(void)
{
    const unsigned own = gpb_stats_shard();
    for (unsigned i = 0; i < GPB_STATS_SHARDS; i++) {
        struct page *page = &pages[(own + i) % GPB_STATS_SHARDS];
        if (!atomic_flag_test_and_set_explicit(&page->taken, memory_order_acquire)) return page;
    }
    return NULL;
}

static void add(const char *text, size_t length)
{
    struct page *page = length ? take() : NULL;
    if (!page) {
        atomic_fetch_add(&lost, 1);
        return;
    }
    if (page->used + length > PAGE) flush(page);
    const size_t used = page->used;
    const bool fits = used + length <= PAGE;
    if (fits) {
        memcpy(page->bytes + used, text, length);
        atomic_store(&page->used, used + length);
    }
    atomic_flag_clear_explicit(&page->taken, memory_order_release);
    if (!fits) atomic_fetch_add(&lost, 1);
}

/* False: nothing is to be written any more. */
static bool is_on(void)
{
    const int fd = atomic_load_explicit(&file, memory_order_relaxed);
    if (fd == CLOSED) return false;
    if (fd == UNOPENED) descriptor(0);
    if (!atomic_load(&process)) atomic_store(&process, (int)getpid());
    return true;
}

void gpb_events_name(int track, const char *name)
{
    char text[EVENT];
    if (!is_on()) return;
    add(text, print(text, ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, "
                    "\"args\": {\"name\": \"%s\"}}", atomic_load(&process), track, name));
}

static void name_thread(void)
{
    char own[16] = "", name[16];
    number = (int)syscall(SYS_gettid);
    pthread_getname_np(pthread_self(), own, sizeof own);
    copy_name(name, sizeof name, own);
    gpb_events_name(number, name);
}

/* The format's times are microseconds. */
static void add_time(gpb_text *text, double seconds)
{
    enum { NS = 1000 };
    const long long ns = (long long)(1e9 * seconds);
    gpb_text_number(text, ns / NS);
    gpb_text_add(text, ".");
    gpb_text_digits(text, (unsigned long long)(ns < 0 ? -ns : ns) % NS, 3);
}

void gpb_events_add_to(int track, const char *kind, const char *name, double begin_s, double end_s,
                       const char *members)
{
    char bytes[EVENT];
    gpb_text text = { .at = bytes, .room = sizeof bytes };
    if (!is_on()) return;
    gpb_text_add(&text, ",\n{\"ph\": \"X\"");
    gpb_text_word(&text, "cat", kind);
    gpb_text_word(&text, "name", name);
    gpb_text_count(&text, "pid", atomic_load(&process));
    gpb_text_count(&text, "tid", track);
    gpb_text_key(&text, "ts");
    add_time(&text, begin_s);
    gpb_text_key(&text, "dur");
    add_time(&text, end_s - begin_s);
    gpb_text_key(&text, "args");
    gpb_text_add(&text, "{");
    gpb_text_add(&text, members);
    gpb_text_add(&text, "}}");
    add(bytes, text.full ? 0 : text.length);
}

void gpb_events_add(const char *kind, const char *name, double begin_s, double end_s, const char *members)
{
    if (!is_on()) return;
    if (!number) name_thread();
    gpb_events_add_to(number, kind, name, begin_s, end_s, members);
}

void gpb_events_lose(unsigned count) { atomic_fetch_add(&lost, count); }

void gpb_events_in_child(void)
{
    const int fd = atomic_load(&file);
    const char *wanted = gpb_option_text(GPB_OPTION_TRACE);
    if (!wanted) return;
    for (int i = 0; i < GPB_STATS_SHARDS; i++) {
        if (pages[i].used) pages[i].used = 0;
        atomic_flag_clear(&pages[i].taken);
    }
    number = 0;
    atomic_store(&process, 0);
    atomic_store(&lost, 0);
    if (fd >= 0 && is_ours(fd)) close(fd);
    atomic_store(&file, strstr(wanted, "%p") ? UNOPENED : CLOSED);
}

/* Nobody else writes from here on, but for those who are at it. Their pages are given a little time; a page
   that is not given back is that of the thread which a signal interrupted, and what is in it is whole. */
__attribute__((noinline)) static void finish(void)
{
    enum { TRIES = 100 };
    char text[EVENT];
    if (atomic_load(&file) == UNOPENED || descriptor(END_S) < 0) return;
    const int fd = atomic_exchange(&file, CLOSED);
    if (fd < 0 || !is_ours(fd)) return;
    for (struct page *page = pages; page < pages + GPB_STATS_SHARDS; page++) {
        for (int i = 0; i < TRIES && atomic_flag_test_and_set(&page->taken); i++) usleep(50);
        if (page->used) empty(page, fd);
    }
    if (atomic_load(&lost)) gpb_log_warn("GPUBLAS_TRACE: %u events are missing", atomic_load(&lost));
    gpb_log_write(fd, text, print(text, "\n]\n"));
}

__attribute__((destructor)) static void end(void)
{
    gpb_traps traps;
    gpb_traps_hold(&traps);
    finish();
    gpb_traps_release(&traps);
}
