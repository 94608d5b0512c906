/* SPDX-License-Identifier: MIT */
/* Calls of which test_report.sh knows what a report has to say. Usage: report
   calls|threads|fork|closed|signal|leave|loop.
   calls: a few of each routine and shape.
   threads: sixteen threads, 2000 products each.
   fork: five products here, seven in a child that exits, none in one, one in a child that ends by _exit.
   closed: as calls, but stderr is closed and its number goes to the file `data`.
   free: as calls, with stderr closed; its number is to be free after them.
   signal: a handler of SIGALRM exits amid the calls.
   leave: exits beside eight threads that multiply.
   loop: prints the nanoseconds that a product of 4 takes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROW = 101, NO_TRANS = 111, UPPER = 121, MOST = 512 };

void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c,
            const int *ldc, size_t, size_t);
void cblas_dgemm(int layout, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);
void cblas_zherk(int layout, int uplo, int trans, int n, int k, double alpha, const void *a, int lda,
                 double beta, void *c, int ldc);
void cblas_dsyr2k(int layout, int uplo, int trans, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);

static double a[2 * MOST * MOST], b[2 * MOST * MOST], c[2 * MOST * MOST];

static void multiply(int n, float *to)
{
    cblas_sgemm(ROW, NO_TRANS, NO_TRANS, n, n, n, 1, (float *)a, n, (float *)b, n, 0, to, n);
}

/* The two names of SGEMM are one routine. The last one has nothing to multiply. */
static void calls(void)
{
    const int n = 20;
    const float one = 1, zero = 0;
    for (int i = 0; i < 10; i++) multiply(n, (float *)c);
    for (int i = 0; i < 4; i++)
        sgemm_("N", "N", &n, &n, &n, &one, (float *)a, &n, (float *)b, &n, &zero, (float *)c, &n, 1, 1);
    for (int i = 0; i < 3; i++)
        cblas_dgemm(ROW, NO_TRANS, NO_TRANS, 512, 512, 512, 1, a, 512, b, 512, 0, c, 512);
    for (int i = 0; i < 2; i++)
        cblas_dgemm(ROW, NO_TRANS, NO_TRANS, 512, 512, 8, 1, a, 8, b, 512, 0, c, 512);
    cblas_dgemm(ROW, NO_TRANS, NO_TRANS, 4, 512, 512, 1, a, 512, b, 512, 0, c, 512);
    cblas_zherk(ROW, UPPER, NO_TRANS, 100, 100, 1, a, 100, 0, c, 100);
    cblas_dsyr2k(ROW, UPPER, NO_TRANS, 200, 100, 1, a, 100, b, 100, 0, c, 200);
    cblas_sgemm(ROW, NO_TRANS, NO_TRANS, 16, 16, 16, 0, (float *)a, 16, (float *)b, 16, 2, (float *)c, 16);
}

static void *worker(void *often)
{
    float own[24 * 24];
    for (long i = 0; i < (long)often; i++) multiply(i % 2 ? 4 : 24, own);
    return NULL;
}

static void threads(int count, long often, int waits)
{
    pthread_t of[16];
    for (int i = 0; i < count; i++) pthread_create(&of[i], NULL, worker, (void *)often);
    for (int i = 0; waits && i < count; i++) pthread_join(of[i], NULL);
}

/* The child's number on stdout. */
static void with_child(int products, int kindly)
{
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < products; i++) multiply(20, (float *)c);
        if (kindly) exit(0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%ld ", (long)child);
    fflush(stdout);
}

static void with_children(void)
{
    for (int i = 0; i < 5; i++) multiply(20, (float *)c);
    with_child(7, 1);
    with_child(0, 1);
    with_child(1, 0);
    printf("%ld\n", (long)getpid());
}

static void leave(int signal)
{
    (void)signal;
    exit(0);
}

static void until_signalled(void)
{
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 20000 }, NULL);
    for (;;) multiply(24, (float *)c);
}

static void closed(void)
{
    close(2);
    if (open("data", O_WRONLY | O_CREAT | O_TRUNC, 0600) == 2) calls();
}

/* The exit code: whether another file has the number. */
static int leaves_free(void)
{
    close(2);
    calls();
    return fcntl(2, F_GETFD) != -1;
}

static void loop(void)
{
    enum { OFTEN = 2000000 };
    struct timespec begin, end;
    multiply(4, (float *)c);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < OFTEN; i++) multiply(4, (float *)c);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.1f\n",
           (1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec)) / OFTEN);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "calls") == 0) calls();
    if (strcmp(what, "threads") == 0) threads(16, 2000, 1);
    if (strcmp(what, "fork") == 0) with_children();
    if (strcmp(what, "closed") == 0) closed();
    if (strcmp(what, "free") == 0) return leaves_free();
    if (strcmp(what, "signal") == 0) until_signalled();
    if (strcmp(what, "loop") == 0) loop();
    if (strcmp(what, "leave") == 0) {
        threads(8, 1 << 30, 0);
        usleep(20000);
    }
    return 0;
}
