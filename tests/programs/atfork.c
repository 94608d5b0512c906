/* SPDX-License-Identifier: MIT */
/* Forks beside a library whose fork handlers take its lock and multiply, while another thread multiplies
   under that lock. Knows nothing of libgpublas. Usage: atfork FORKS [free]. Exits with 1 if a product was
   wrong, with 3 if a fork hangs. Prints the median time of a fork, in ms. free: the other thread does not
   hold the lock. Built three ways: as the program; with -DLOCKING as that library; with -DSHIM as a
   libcuda.so.1 whose cuInit forks, in front of libcudx.so.1. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef SHIM
int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    void *handle = dlopen("libcudx.so.1", RTLD_NOW);
    int (*initialise)(unsigned) = NULL;
    if (handle) *(void **)&initialise = dlsym(handle, "cuInit");
    for (int i = 0; i < 3; i++) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
    }
    return initialise ? initialise(flags) : 100;
}
#else

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
float sdot_(const int *, const float *, const int *, const float *, const int *);
void under_lock(void (*body)(void));
extern int handlers_wrong;

/* C = A A of ones. It is right if the first and the last element are. */
static int product_is_right(int n)
{
    float *a = malloc(2 * sizeof(float) * (size_t)(n * n)), *c = a + n * n;
    const float one = 1, zero = 0;
    if (!a) return 0;
    for (int i = 0; i < n * n; i++) a[i] = 1;
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
    const int right = c[0] == (float)n && c[n * n - 1] == (float)n;
    free(a);
    return right;
}

#ifdef LOCKING
int handlers_wrong;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void multiply(void)
{
    for (int i = 0; i < 3; i++) handlers_wrong += !product_is_right(4);
    handlers_wrong += !product_is_right(48);
}
static void prepare(void)
{
    pthread_mutex_lock(&lock);
    multiply();
}
static void go_on(void)
{
    multiply();
    pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(prepare, go_on, go_on); }

void under_lock(void (*body)(void))
{
    pthread_mutex_lock(&lock);
    body();
    pthread_mutex_unlock(&lock);
}
#else

static volatile int wrong, forks;

/* Also calls names for the first time. */
static void multiply(void)
{
    static double x[4] = { 1, 2, 3, 4 }, y[4];
    static const float v[2] = { 3, 4 };
    const int two = 2, one = 1;
    const double unit = 1, zero = 0;
    for (int i = 0; i < 50; i++) wrong += !product_is_right(64);
    dgemm_("N", "N", &two, &two, &two, &unit, x, &two, x, &two, &zero, y, &two);
    wrong += y[0] != 7 || sdot_(&two, v, &one, v, &one) != 25;
}

static void *work(void *free)
{
    for (;;) {
        if (free) multiply();
        else under_lock(multiply);
        usleep(1000);
    }
    return NULL;
}

static void *watch(void *unused)
{
    for (int last = -1;; last = forks) {
        sleep(10);
        if (forks != last) continue;
        printf("hangs after %d forks\n", forks);
        fflush(stdout);
        _exit(3);
    }
    return unused;
}

static int visit(struct dl_phdr_info *info, size_t size, void *count)
{
    (void)info;
    (void)size;
    ++*(int *)count;
    return 0;
}

/* The child uses the dynamic linker and multiplies. */
static int child_is_right(void)
{
    int objects = 0;
    alarm(20);
    dl_iterate_phdr(visit, &objects);
    return objects && dlsym(RTLD_DEFAULT, "malloc") && !handlers_wrong && product_is_right(40);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 1000;
    double *took_ms = calloc((size_t)count, sizeof *took_ms);
    pthread_t thread;
    if (!took_ms || count < 1) return 2;
    pthread_create(&thread, NULL, watch, NULL);
    pthread_create(&thread, NULL, work, argc > 2 ? argv[2] : NULL);
    for (forks = 0; forks < count; forks++) {
        int status = -1;
        const double begin_ms = now_ms();
        const pid_t child = fork();
        if (child == 0) _exit(!child_is_right());
        took_ms[forks] = now_ms() - begin_ms;
        waitpid(child, &status, 0);
        wrong += status != 0;
    }
    qsort(took_ms, (size_t)count, sizeof *took_ms, by_size);
    printf("%.1f\n", took_ms[count / 2]);
    fflush(stdout);
    _exit(wrong || handlers_wrong);
}
#endif
#endif
