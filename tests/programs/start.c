/* SPDX-License-Identifier: MIT */
/* A program with one thread that multiplies and sees when a library starts another thread. Usage: start
   gpu|exit|fork|calls|devices [FILE].
   calls: multiplies thirty times, or rests for half a second if START_IDLE is set.
   devices: multiplies thirty times after it has changed what CUDA reads of the environment.
   gpu: multiplies until a product was computed on a GPU.
   exit: ends as soon as there is a second thread.
   fork: forks at that moment, and lets the children multiply before it goes on as `gpu`.
   Exits with 0 if every product was right and what it waited for came. FILE: ends when that has been
   replaced.
   GEMM, REAL: sgemm_ and float if they are not defined. START_SOLVES: solves behind each product, in double,
   with the library of that name as the host (sparing_host.c), whose number of threads is the same after each
   call. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/gpublas.h"

#ifndef GEMM
#define GEMM sgemm_
#define REAL float
#endif

enum { N = 400, MOST = 400, FEW = 30, SPARED = 64 };

void GEMM(const char *, const char *, const int *, const int *, const int *, const REAL *, const REAL *,
          const int *, const REAL *, const int *, const REAL *, REAL *, const int *, size_t, size_t);

static REAL a[N * N], b[N * N], c[N * N];

/* Small whole numbers, so every product is exact. */
static int is_right(int n)
{
    const REAL one = 1, zero = 0;
    for (int i = 0; i < n * n; i++) {
        a[i] = (REAL)(i % 7 - 3);
        b[i] = (REAL)(i % 5 - 2);
        c[i] = 99;
    }
    GEMM("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < n; i += 13)
        for (int j = 0; j < n; j += 17) {
            REAL sum = 0;
            for (int l = 0; l < n; l++) sum += a[i + l * n] * b[l + j * n];
            if (c[i + j * n] != sum) return 0;
        }
    return 1;
}

static int keeps_threads(int (*get)(void)) { return !get || get() == SPARED; }

/* Systems that are too small for a GPU, through the library's doors. */
static int solves(const char *host)
{
    void (*trsm)(const char *, const char *, const char *, const char *, const int *, const int *,
                 const double *, const double *, const int *, double *, const int *, size_t, size_t, size_t,
                 size_t);
    void (*gesv)(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
    int (*get)(void);
    void *handle = dlopen(host, RTLD_LAZY | RTLD_NOLOAD);
    *(void **)&get = handle ? dlsym(handle, "openblas_get_num_threads") : NULL;
    *(void **)&trsm = dlsym(RTLD_DEFAULT, "dtrsm_");
    *(void **)&gesv = dlsym(RTLD_DEFAULT, "dgesv_");
    const int one = 1;
    const double unit = 1, four = 4;
    double of = 4, b = 8, x = 8;
    int pivot, info, right = keeps_threads(get);
    trsm("L", "L", "N", "N", &one, &one, &unit, &four, &one, &x, &one, 1, 1, 1, 1);
    right &= keeps_threads(get);
    gesv(&one, &one, &of, &one, &pivot, &b, &one, &info);
    return right && keeps_threads(get) && x == 2 && b == 2;
}

static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *one; tasks && (one = readdir(tasks));) count += one->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return count;
}

static int on_gpu(void)
{
    gpublas_stats_t stats = { 0 };
    int (*ask)(gpublas_stats_t *, size_t);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "gpublas_stats");
    return ask && !ask(&stats, sizeof stats) && stats.gpu_calls > 0;
}

static struct timespec written(const char *file)
{
    struct stat about;
    return lstat(file, &about) ? (struct timespec){ 0 } : about.st_mtim;
}

static void wait_for(const char *file, struct timespec before)
{
    for (int i = 0; i < 20000; i++) {
        const struct timespec now = written(file);
        if (now.tv_sec != before.tv_sec || now.tv_nsec != before.tv_nsec) return;
        usleep(1000);
    }
}

static int children_are_right(void)
{
    int right = 1, status;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(is_right(64) && is_right(N) && !on_gpu() ? 0 : 1);
        }
        right &= child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    return right;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "gpu";
    const char *file = count > 2 ? arguments[2] : NULL;
    const struct timespec before = file ? written(file) : (struct timespec){ 0 };
    int forked = 0;
    if (getenv("START_IDLE")) return usleep(500000);
    if (strcmp(mode, "devices") == 0) setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    for (int calls = 0; calls < MOST; calls++) {
        const char *host = getenv("START_SOLVES");
        if (!is_right(N) || (host && !solves(host))) {
            printf("call %d is wrong\n", calls);
            return 1;
        }
        if (strcmp(mode, "calls") == 0 || strcmp(mode, "devices") == 0) {
            if (calls + 1 == FEW) return 0;
            continue;
        }
        if (strcmp(mode, "gpu") != 0 && !forked && threads() > 1) {
            if (strcmp(mode, "exit") == 0) return 0;
            forked = 1;
            if (!children_are_right()) {
                printf("a child is wrong, or hung\n");
                return 1;
            }
        }
        if (!on_gpu()) continue;
        if (file) wait_for(file, before);
        return strcmp(mode, "exit") == 0 || (strcmp(mode, "fork") == 0 && !forked);
    }
    printf("%d calls, none on a GPU\n", MOST);
    return 1;
}
