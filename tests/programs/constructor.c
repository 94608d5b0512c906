/* SPDX-License-Identifier: MIT */
/* A library whose constructor starts a thread that multiplies, and waits for it. The thread must not need
   what dlopen holds meanwhile. With -DPROGRAM: the program that opens it; with -DWARM it first makes a
   product of its own. */
#ifdef PROGRAM
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

int main(int argc, char **argv)
{
    alarm(20);
    if (argc > 2) {
        const int one = 1;
        const float two = 2;
        float c = 0;
        sgemm_("N", "N", &one, &one, &one, &two, &two, &one, &two, &one, &two, &c, &one);
        if (c != 8) return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    int *right = library ? dlsym(library, "constructed_right") : NULL;
    printf("constructor %s\n", right && *right ? "right" : "wrong");
    return !(right && *right);
}
#else
#include <pthread.h>
#include <stddef.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
int constructed_right;

static void *multiply(void *unused)
{
    enum { N = 40 };
    static float a[N * N], c[N * N];
    const int n = N;
    const float one = 1, zero = 0;
    for (int i = 0; i < N * N; i++) a[i] = 1;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
    constructed_right = 1;
    for (int i = 0; i < N * N; i++) constructed_right &= c[i] == N;
    return unused;
}

__attribute__((constructor)) static void construct(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, multiply, NULL) == 0) pthread_join(thread, NULL);
}
#endif
