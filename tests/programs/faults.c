/* SPDX-License-Identifier: MIT */
/* A program that serves its own page faults, or reports its crashes, in whichever thread they occur. Knows
   nothing of libgpublas. Usage: faults barrier|demand|truncated|userfault [ROUNDS]: prints a line a check;
   exits with 1 if one was wrong, with 2 if this cannot be had here. faults null|short|gone a|b|c: gives
   the product a bad pointer (NULL; an operand whose last page is unmapped; an operand that is unmapped
   altogether) and dies of it after a report of several lines. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "integers.h"

enum { SIDE = 768, PAGE = 4096, BYTES = SIDE * SIDE * 4 };

static atomic_int served, elsewhere;  /* faults, and those of them that occurred in other threads than main */
static char *matrix[3];                  /* A, B, C: mappings of BYTES */

static char *map(int file)
{
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
                    file, 0);
    if (at == MAP_FAILED) exit(2);
    return at;
}

static void multiply_all(void)
{
    const int n = SIDE;
    const float one = 1, zero = 0;
    sgemm_("N", "N", &n, &n, &n, &one, (float *)matrix[0], &n, (float *)matrix[1], &n, &zero,
           (float *)matrix[2], &n);
}

/* A has ones up to `columns` and zeros from there on; B has ones. */
static bool c_is(int columns)
{
    const float *c = (const float *)matrix[2];
    int good = 0;
    for (int i = 0; i < SIDE * SIDE; i++) good += c[i] == (float)columns;
    if (good != SIDE * SIDE) printf("%d of %d right\n", good, SIDE * SIDE);
    return good == SIDE * SIDE;
}

static void fill_ones(void)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < SIDE * SIDE; j++) ((float *)matrix[i])[j] = 1;
}

static void on_signal(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigaction(number, &action, NULL);
}

static char *page_of(const siginfo_t *info)
{
    return (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
}

static void count(void)
{
    atomic_fetch_add(&served, 1);
    if (syscall(SYS_gettid) != getpid()) atomic_fetch_add(&elsewhere, 1);
}

/* A write barrier, as garbage collectors have it, or pages on demand: a thread that touches a page gets
   it. */
static void unprotect(int number, siginfo_t *info, void *unused)
{
    (void)number, (void)unused;
    count();
    mprotect(page_of(info), PAGE, PROT_READ | PROT_WRITE);
}

static void barrier(int which, int protection, int rounds)
{
    fill_ones();
    on_signal(SIGSEGV, unprotect);
    for (int i = 0; i < rounds; i++) {
        mprotect(matrix[which], BYTES, protection);
        multiply_all();
        tell(c_is(SIDE), "the product of pages that a handler unprotects");
    }
    /* A page that two threads touch at once is served twice. */
    tell(served >= rounds * BYTES / PAGE, "each page was served");
}

/* What is left of a mapped file that was cut short is read as zeros. */
static void map_zeros(int number, siginfo_t *info, void *unused)
{
    (void)number, (void)unused;
    count();
    if (mmap(page_of(info), PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        == MAP_FAILED)
        _exit(3);
}

static void truncated(int rounds)
{
    char name[] = "/tmp/gpublas.faults.XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    on_signal(SIGBUS, map_zeros);
    for (int i = 0; i < rounds; i++) {
        if (ftruncate(file, BYTES)) exit(2);
        matrix[0] = map(file);
        fill_ones();
        if (ftruncate(file, BYTES / 2)) exit(2);
        multiply_all();
        tell(c_is(SIDE / 2), "the product of a mapped file that was cut short");
        munmap(matrix[0], BYTES);
    }
    tell(served >= rounds * BYTES / PAGE / 2, "every page that it lacks was served");
}

/* A thread of the program provides the pages of A. */
static void *provide(void *file)
{
    static float ones[PAGE / 4];
    struct uffd_msg message;
    for (int i = 0; i < PAGE / 4; i++) ones[i] = 1;
    while (read(*(int *)file, &message, sizeof message) == sizeof message) {
        struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1),
                                    .src = (uintptr_t)ones, .len = PAGE };
        ioctl(*(int *)file, UFFDIO_COPY, &copy);
        served++;
    }
    return NULL;
}

static void userfault(void)
{
    static int file;
    pthread_t thread;
    struct uffdio_api api = { .api = UFFD_API };
    file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    fill_ones();
    madvise(matrix[0], BYTES, MADV_DONTNEED);
    struct uffdio_register range = { .range = { (uintptr_t)matrix[0], BYTES },
                                     .mode = UFFDIO_REGISTER_MODE_MISSING };
    if (file < 0 || ioctl(file, UFFDIO_API, &api) || ioctl(file, UFFDIO_REGISTER, &range)) exit(2);
    if (pthread_create(&thread, NULL, provide, &file)) exit(2);
    multiply_all();
    tell(c_is(SIDE), "the product of pages that a thread provides");
    tell(served >= BYTES / PAGE, "each page was provided");
}

/* ---- crashes. This does as Python's faulthandler: it first removes the handler, so the next thread to
   fault ends the process at once. Then it writes the report, which takes time, and then the process dies
   of the signal. */

static void say(const char *line) { (void)!write(STDERR_FILENO, line, strlen(line)); }

static void report(int number, siginfo_t *info, void *unused)
{
    (void)info, (void)unused;
    signal(number, SIG_DFL);
    say("report: begun\n");
    say(syscall(SYS_gettid) == getpid() ? "report: in the thread that called\n"
                                        : "report: in another thread\n");
    for (int i = 0; i < 20; i++) usleep(1000);
    say("report: whole\n");
    raise(number);
}

static void crash(const char *how, int which)
{
    fill_ones();
    on_signal(SIGSEGV, report);
    if (strcmp(how, "null") == 0) matrix[which] = NULL;
    else if (strcmp(how, "short") == 0) munmap(matrix[which] + BYTES - PAGE, PAGE);
    else munmap(matrix[which], BYTES);
    multiply_all();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "2";
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(100);
    for (int i = 0; i < 3; i++) matrix[i] = map(-1);
    fill_ones();
    multiply_all();                      /* the BLAS has now started what it starts */
    if (strcmp(how, "barrier") == 0) barrier(2, PROT_READ, atoi(more));
    else if (strcmp(how, "demand") == 0) barrier(0, PROT_NONE, atoi(more));
    else if (strcmp(how, "truncated") == 0) truncated(atoi(more));
    else if (strcmp(how, "userfault") == 0) userfault();
    else crash(how, *more - 'a');
    if (elsewhere) printf("faults in other threads: %d of %d\n", elsewhere, served);
    return wrong > 0;
}
