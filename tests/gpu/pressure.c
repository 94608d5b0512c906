/* SPDX-License-Identifier: MIT */
/* See pressure.h. The process or thread that holds memory goes on until the other end of its pipe is closed,
   so it also ends if this program dies. */
#include "tests/gpu/pressure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/operand.h"
#include "tests/reference.h"

enum { PIECES = 6, PROCESS_MS = 500, THREAD_MS = 40 };

extern char **environ;
static pid_t process;
static int to_process, to_thread[2];
static pthread_t thread;
static void (*fail)(const char *);       /* fakecuda_fail */

typedef struct hog {
    void *piece[PIECES];
    size_t size[PIECES], held, total;
    uint64_t random;
} hog;

static void let_go(hog *h, int i)
{
    if (h->piece[i]) device_give(h->piece[i]);
    h->held -= h->size[i];
    h->piece[i] = NULL;
    h->size[i] = 0;
}

/* All that is free but `leave`, as far as the driver gives it. Returns how often it did not. */
static int take(hog *h, size_t leave)
{
    int refused = 0;
    for (int i = 0; i < PIECES; i++) {
        const size_t there = device_free(&h->total), least = h->total / 4096;
        size_t bytes = there > leave ? there - leave : 0;
        for (; !h->piece[i] && bytes > least; bytes -= bytes / 8, refused += !h->piece[i])
            if ((h->piece[i] = device_take(bytes))) h->held += h->size[i] = bytes;
    }
    return refused;
}

/* The next call but a few of some function is refused. Among them are functions that the tests call, too, and
   operand.c is patient with those. */
static void sabotage(hog *h)
{
    static const char *const functions[] = { "cuMemAlloc",      "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                             "cuMemcpy2DAsync", "cuLaunchKernel",    "cuLaunchKernelEx",
                                             "cuEventRecord",   "cuStreamWaitEvent" };
    char rule[80];
    snprintf(rule, sizeof rule, "%s:%d:2",
             functions[gpb_reference_draw(&h->random, sizeof functions / sizeof *functions)],
             1 + (int)gpb_reference_draw(&h->random, 30));
    fail(rule);
}

/* Until `stop` can be read or is closed. Every fourth time everything is released, else often nothing. */
static bool press(const char *who, int stop, int max_ms)
{
    hog h = { .random = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15 ^ (uint64_t)max_ms };
    size_t most = 0;
    int times = 0, refused = 0, full = 0;
    for (struct pollfd over = { .fd = stop, .events = POLLIN };
         poll(&over, 1, 10 + (int)gpb_reference_draw(&h.random, (uint64_t)max_ms - 10)) == 0; times++) {
        const bool all = gpb_reference_draw(&h.random, 4) == 0;
        for (int i = 0; i < PIECES; i++)
            if (all || gpb_reference_draw(&h.random, 3) == 0) let_go(&h, i);
        device_free(&h.total);
        const size_t little = h.total / 256, leave[] = { 0, little, little, h.total / 16 };
        if (!all)
            refused += take(&h, gpb_reference_draw(&h.random, 1 + leave[gpb_reference_draw(&h.random, 4)]));
        if (h.held > most) most = h.held;
        full += device_free(&h.total) < little;
        if (fail) sabotage(&h);
    }
    for (int i = 0; i < PIECES; i++) let_go(&h, i);
    printf("%s: device memory held up to %zu of %zu MiB, changed %d times, less than %zu KiB left in %d, %d "
           "refused\n",
           who, most >> 20, h.total >> 20, times, h.total / 256 >> 10, full, refused);
    return times > 0 && most > h.total / 4;
}

void pressure_start(void)
{
    int ends[2];
    char *const arguments[] = { "soak", PRESSURE_ARGUMENT, NULL };
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) || posix_spawn_file_actions_init(&actions)
        || posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        || posix_spawn(&process, "/proc/self/exe", &actions, NULL, arguments, environ)) {
        perror("the second process");
        exit(1);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    to_process = ends[1];
}

int pressure_process(void)
{
    char go;
    if (read(0, &go, 1) != 1) return 0;
    return !gpu_open() || !press("second process", 0, PROCESS_MS);
}

bool pressure_is_fake(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (libcuda && !fail) *(void **)&fail = dlsym(libcuda, "fakecuda_fail");
    return fail;
}

static void *press_beside(void *unused)
{
    (void)unused;
    gpu_make_current(true);
    return press("thread", to_thread[0], THREAD_MS) ? to_thread : NULL;
}

void pressure_begin(void)
{
    if (write(to_process, "", 1) != 1
        || (pressure_is_fake()
            && (pipe2(to_thread, O_CLOEXEC) || pthread_create(&thread, NULL, press_beside, NULL)))) {
        perror("pressure");
        exit(1);
    }
}

bool pressure_end(void)
{
    void *went_well = to_thread;
    int status = 1;
    fflush(stdout);
    close(to_process);
    if (waitpid(process, &status, 0) != process) perror("waitpid");
    if (fail) {
        close(to_thread[1]);
        pthread_join(thread, &went_well);
        fail("");
        close(to_thread[0]);
    }
    return status == 0 && went_well;
}
