/* SPDX-License-Identifier: MIT */
/* A library whose constructor starts a thread that multiplies, forms sums and solves, thousands of times, and
   waits for it. The thread must not need what dlopen holds meanwhile. With -DBUSY the constructor works for
   0.6 s and waits for nobody. With -DPROGRAM: the program that opens it, and then makes a product. With a
   second argument it makes one before, too, or ("beside") while another thread opens it. */
#ifdef PROGRAM
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

static int is_right(void)
{
    const int one = 1;
    const float two = 2;
    float c = 0;
    sgemm_("N", "N", &one, &one, &one, &two, &two, &one, &two, &one, &two, &c, &one);
    return c == 8;
}

static void *open_it(void *name) { return dlopen(name, RTLD_NOW); }

int main(int argc, char **argv)
{
    pthread_t thread;
    void *library;
    const int beside = argc > 2 && strcmp(argv[2], "beside") == 0;
    alarm(20);
    if (beside && pthread_create(&thread, NULL, open_it, argv[1])) return 2;
    if (beside) usleep(100000);
    if (argc > 2 && !is_right()) return 2;
    if (beside) pthread_join(thread, &library);
    else library = open_it(argv[1]);
    int *right = library ? dlsym(library, "constructed_right") : NULL;
    printf("constructor %s\n", right && *right ? "right" : "wrong");
    return !(right && *right && is_right());
}
#elif defined(BUSY)
#include <time.h>

int constructed_right = 1;

__attribute__((constructor)) static void construct(void)
{
    struct timespec spent;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    while (spent.tv_sec == 0 && spent.tv_nsec < 600000000);
}
#else
#include <pthread.h>
#include <stddef.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
int constructed_right;

/* A name that is forwarded, and one of LAPACK: 2 x = 6. */
static int is_solved(void)
{
    const int one = 1;
    const double three = 3;
    double a = 2, b = 6;
    int pivot, info;
    dgesv_(&one, &one, &a, &one, &pivot, &b, &one, &info);
    return info == 0 && b == 3 && ddot_(&one, &b, &one, &three, &one) == 9;
}

static void *multiply(void *unused)
{
    enum { N = 40, TIMES = 3000 };
    static float a[N * N], c[N * N];
    const int n = N;
    const float one = 1, zero = 0;
    for (int i = 0; i < N * N; i++) a[i] = 1;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
    constructed_right = 1;
    for (int i = 0; i < N * N; i++) constructed_right &= c[i] == N;
    for (int i = 0; i < TIMES; i++) constructed_right &= is_solved();
    return unused;
}

__attribute__((constructor)) static void construct(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, multiply, NULL) == 0) pthread_join(thread, NULL);
}
#endif
