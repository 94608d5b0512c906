/* SPDX-License-Identifier: MIT */
/* A program whose products are so long that waiting for a start in the background pays, if it succeeds.
   Knows nothing of libgpublas. Usage: wait N COUNT: COUNT products of N x N, with a fork after each. wait
   FILE: opens a library whose constructor multiplies (this file, -DLIBRARY=N). Exits with 1 if a product
   was wrong, 2 if a fork took more than 2 s: it may wait for 0.1 s, and a loaded machine for the rest. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

/* A = B = ones, in mappings of their own. */
static void multiply(int n)
{
    const float one = 1, zero = 0;
    const size_t bytes = 4 * (size_t)n * (size_t)n;
    float *a = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
          *c = a + bytes / 4;
    if (a == MAP_FAILED) _exit(1);
    for (size_t i = 0; i < bytes / 4; i++) a[i] = 1;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
    for (size_t i = 0; i < bytes / 4; i += 101)
        if (c[i] != (float)n) _exit(1);
    munmap(a, 2 * bytes);
}

#ifdef LIBRARY
__attribute__((constructor)) static void begin(void) { multiply(LIBRARY); }
#else
static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

int main(int count, char **arguments)
{
    if (count < 3) return count < 2 || !dlopen(arguments[1], RTLD_NOW);
    for (int i = 0; i < atoi(arguments[2]); i++) {
        multiply(atoi(arguments[1]));
        const double begin = now();
        const pid_t child = fork();
        if (child == 0) _exit(0);
        const double took = now() - begin;
        if (took > 2) {
            printf("a fork took %.3f s\n", took);
            return 2;
        }
        if (child > 0) waitpid(child, NULL, 0);
    }
    return 0;
}
#endif
