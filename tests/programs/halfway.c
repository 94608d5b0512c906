/* SPDX-License-Identifier: MIT */
/* Forks while another thread's first call waits in the dynamic linker, with libraries half mapped. The
   child multiplies in two types, and opens again, in another mode, a library that is open. Knows nothing of
   libgpublas. Usage: halfway LIBRARY. Exits with 0 if the child was right, with 1 if not, with 2 on a usage
   error. Prints the time of the fork, in ms. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);

static int single_is_right(void)
{
    const int n = 2;
    const float x[4] = { 1, 2, 3, 4 }, one = 1, zero = 0;
    float y[4];
    sgemm_("N", "N", &n, &n, &n, &one, x, &n, x, &n, &zero, y, &n);
    return y[0] == 7 && y[3] == 22;
}

static int double_is_right(void)
{
    const int n = 2;
    const double x[4] = { 1, 2, 3, 4 }, one = 1, zero = 0;
    double y[4];
    dgemm_("N", "N", &n, &n, &n, &one, x, &n, x, &n, &zero, y, &n);
    return y[0] == 7 && y[3] == 22;
}

static void *first_call(void *unused)
{
    single_is_right();
    return unused;
}

static double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e3 * (double)at.tv_sec + 1e-6 * (double)at.tv_nsec;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    int status = 1;
    if (count != 2 || !dlopen(arguments[1], RTLD_LAZY)) return 2;
    if (pthread_create(&thread, NULL, first_call, NULL)) return 2;
    usleep(300000);
    const double begin = now_ms();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(!single_is_right() || !double_is_right()
              || !dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE));
    }
    printf("%.0f\n", now_ms() - begin);
    fflush(stdout);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        fprintf(stderr, "the child ended with %#x\n", (unsigned)status);
    _exit(status != 0);                      /* the thread never returns */
}
