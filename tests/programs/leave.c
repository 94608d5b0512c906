/* SPDX-License-Identifier: MIT */
/* A program whose main returns while other threads multiply, or while a library starts in the background.
   If it does not end, a watchdog prints where each thread stands. Knows nothing of libgpublas. Usage:
   leave calls|start|large [SEED [SECONDS [N]]]. calls: four threads have each multiplied once, and main
   returns at some later moment; start: main returns at some moment of the first 0.7 s; large: in the
   middle of products that take long. Exits with 0; with 1 if a product was wrong, 8 if a thread crashed, 9
   if the program did not end within SECONDS (10). */
#include <dirent.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

enum { THREADS = 4 };
static int size = 600;
static double limit_s = 10, begun_s, returned_s;
static atomic_int multiplied, answered;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* C = A B of ones, checked at a few places. */
static void *multiply(void *unused)
{
    const int n = size;
    const size_t count = (size_t)n * (size_t)n;
    const float one = 1, zero = 0;
    float *a = malloc(count * sizeof *a), *c = malloc(count * sizeof *c);
    if (!a || !c) _exit(1);
    for (size_t i = 0; i < count; i++) a[i] = 1;
    for (;;) {
        sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
        for (size_t i = 0; i < count; i += 997)
            if (c[i] != (float)n) _exit(1);
        atomic_fetch_add(&multiplied, 1);
    }
    return unused;
}

/* ---- the watchdog */

static void tell(const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    (void)!write(STDERR_FILENO, line, (size_t)(length < (int)sizeof line ? length : (int)sizeof line - 1));
}

static void on_question(int number)
{
    void *frames[48];
    (void)number;
    backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
    atomic_fetch_add(&answered, 1);
}

static void show(const char *task, const char *what)
{
    char path[300], text[600];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, what);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = 0;
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = at[1] ? '|' : 0;
    tell("  %s: %s\n", what, text);
}

static void show_all(void)
{
    DIR *tasks = opendir("/proc/self/task");
    tell("leave: %.1f s old, main returned %.1f s ago, %d products\n", now() - begun_s,
         returned_s > 0 ? now() - returned_s : 0.0, atomic_load(&multiplied));
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || atol(task->d_name) == syscall(SYS_gettid)) continue;
        tell("thread %s%s\n", task->d_name, atol(task->d_name) == getpid() ? " (main)" : "");
        static const char *const about[] = { "comm", "stat", "wchan", "syscall", "stack" };
        for (size_t i = 0; i < sizeof about / sizeof *about; i++) show(task->d_name, about[i]);
        const int before = atomic_load(&answered);
        syscall(SYS_tgkill, getpid(), (int)atol(task->d_name), SIGUSR2);
        for (int i = 0; i < 300 && atomic_load(&answered) == before; i++) usleep(1000);
        if (atomic_load(&answered) == before) tell("  (does not answer)\n");
    }
}

/* The crash of one thread is printed; the others wait for the end. */
static void on_crash(int number, siginfo_t *info, void *unused)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char line[300];
    (void)number, (void)unused;
    while (atomic_flag_test_and_set(&told)) sleep(1);
    const long self = syscall(SYS_gettid);
    tell("leave: thread %ld%s crashed, main returned %.6f s ago, at %p:\n", self,
         self == getpid() ? " (main)" : "", returned_s > 0 ? now() - returned_s : 0.0, info->si_addr);
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first, last;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &first, &last) == 2 && first <= (unsigned long)info->si_addr
            && (unsigned long)info->si_addr < last)
            tell("  %s", line);
    on_question(0);
    _exit(8);
}

static void *watch(void *unused)
{
    while (now() - begun_s < limit_s) usleep(20000);
    show_all();
    _exit(9);
    return unused;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "calls";
    const int seed = argc > 2 ? atoi(argv[2]) : 1;
    void *frames[1];
    pthread_t thread;
    if (argc > 3) limit_s = atof(argv[3]);
    if (argc > 4) size = atoi(argv[4]);
    begun_s = now();
    backtrace(frames, 1);                /* loads what it needs now */
    signal(SIGUSR2, on_question);
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO }, NULL);
    sigaction(SIGBUS, &(struct sigaction){ .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO }, NULL);
    if (pthread_create(&thread, NULL, watch, NULL)) return 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, multiply, NULL)) return 1;
    if (strcmp(how, "start") == 0) usleep((unsigned)(seed * 13577) % 700000);
    else if (strcmp(how, "calls") == 0) while (atomic_load(&multiplied) < 2 * THREADS) usleep(100);
    if (strcmp(how, "start") != 0)
        usleep((unsigned)(seed * 1377) % (strcmp(how, "large") == 0 ? 1500000 : 50000));
    returned_s = now();
    return 0;
}
