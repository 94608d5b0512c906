/* SPDX-License-Identifier: MIT */
/* A program that resets its GPU by cudaDeviceReset, as numba's cuda.close() and many a test suite do.
   Nothing here knows of libgpublas. Usage: reset rounds COUNT [left]: a product and a reset in turn; left:
   the program itself does not use the GPU again. reset beside COUNT: four threads' products while the
   first one resets. An alarm ends what hangs. Prints a line a round about what the driver says of the
   context; exits with 1 if a product was wrong. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "matrix.h"

enum { THREADS = 4 };
static int (*init)(unsigned), (*retain)(void **, int), (*reset)(int), (*state)(int, unsigned *, int *),
    (*current)(void *);
static int (*number)(void *, unsigned long long *);
static void *primary;
static atomic_int wrong, calls, over;

static void open_driver(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!libcuda) {
        printf("no libcuda.so.1\n");
        exit(77);
    }
    *(void **)&init = dlsym(libcuda, "cuInit");
    *(void **)&retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&reset = dlsym(libcuda, "cuDevicePrimaryCtxReset_v2");
    *(void **)&state = dlsym(libcuda, "cuDevicePrimaryCtxGetState");
    *(void **)&current = dlsym(libcuda, "cuCtxSetCurrent");
    *(void **)&number = dlsym(libcuda, "cuCtxGetId");
    if (init(0)) {
        printf("no device\n");
        exit(77);
    }
}

static void say(const char *when)
{
    unsigned flags = 0;
    int active = -1, said = -1;
    unsigned long long id = 0;
    state(0, &flags, &active);
    if (number && primary) said = number(primary, &id);
    printf("%s: active %d, context %p, cuCtxGetId %d %llu\n", when, active, primary, said, id);
    fflush(stdout);
}

/* C = A B of ones, where C is full of wrong numbers before. */
static void multiply(int n, const float *ones, float *c)
{
    const float one = 1, zero = 0;
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) c[i] = -1;
    sgemm_("N", "N", &n, &n, &n, &one, ones, &n, ones, &n, &zero, c, &n);
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) wrong += c[i] != (float)n;
    calls++;
}

static float *matrix(int n)
{
    float *x = malloc((size_t)n * (size_t)n * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++) x[i] = 1;
    return x;
}

static void rounds(int count, bool left)
{
    enum { LARGE = 700, SMALL = 64 };
    float *ones = matrix(LARGE), *c = matrix(LARGE);
    for (int i = 0; i < count; i++) {
        if (i == 0 || !left) {
            retain(&primary, 0);
            current(primary);
        }
        multiply(LARGE, ones, c);
        multiply(SMALL, ones, c);
        say("before the reset");
        const int result = reset(0);
        say(result ? "the reset was refused" : "after the reset");
    }
    multiply(LARGE, ones, c);
    multiply(SMALL, ones, c);
}

static void *again_and_again(void *argument)
{
    const int n = *(const int *)argument;
    float *ones = matrix(n), *c = matrix(n);
    while (!over) multiply(n, ones, c);
    return argument;
}

static void beside(int count)
{
    static const int sizes[THREADS] = { 64, 300, 520, 900 };
    pthread_t threads[THREADS];
    retain(&primary, 0);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, again_and_again, (void *)&sizes[i])) abort();
    for (int i = 0; i < count; i++) {
        for (const int before = calls; calls < before + 2 * THREADS;)
            nanosleep(&(struct timespec){ 0, 100000 * (1 + i % 7) }, NULL);
        const int result = reset(0);
        say(result ? "the reset was refused" : "after a reset");
        if (i % 2) retain(&primary, 0);
    }
    over = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    alarm(120);
    open_driver();
    if (strcmp(arguments[1], "rounds") == 0) rounds(atoi(arguments[2]), count > 3);
    else beside(atoi(arguments[2]));
    printf("%s: %d products, %d results wrong\n", wrong ? "WRONG" : "right", calls, wrong);
    return wrong != 0;
}
