/* SPDX-License-Identifier: MIT */
/* Cancelled threads whose call must not be where that takes effect, because BLAS and LAPACK know no
   cancellation points. Each routine has a process of its own, so its calls are that process's first: in
   three threads one after the other a cancellation is pending, and the call returns all the same, with
   cancellation enabled, errno as it was, and the results that a later call has. Usage: pending ORDER CALLS,
   of DGEMM, before the process is made. Exits with the number of routines for which that does not hold. */
#include <complex.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tgmath.h>
#include <unistd.h>

enum { MOST = 300 };
static int n, info, ipiv[MOST], lwork;
static double complex a[MOST * MOST], b[MOST * MOST], work[64 * MOST], vectors[2 * MOST];

/* fill: A is near to 4 times the identity. close: nearly the same elements. */
#define TYPE(p, T, R, near_enough)                                                                         \
    void p##gemm_(const char *, const char *, const int *, const int *, const int *, const T *, const T *, \
                  const int *, const T *, const int *, const T *, T *, const int *);                       \
    void p##syrk_(const char *, const char *, const int *, const int *, const T *, const T *, const int *, \
                  const T *, T *, const int *);                                                            \
    void p##symm_(const char *, const char *, const int *, const int *, const T *, const T *, const int *, \
                  const T *, const int *, const T *, T *, const int *);                                    \
    void p##trsm_(const char *, const char *, const char *, const char *, const int *, const int *,        \
                  const T *, const T *, const int *, T *, const int *);                                    \
    void p##trmm_(const char *, const char *, const char *, const char *, const int *, const int *,        \
                  const T *, const T *, const int *, T *, const int *);                                    \
    void p##getrf_(const int *, const int *, T *, const int *, int *, int *);                              \
    void p##potrf_(const char *, const int *, T *, const int *, int *);                                    \
    void p##gesv_(const int *, const int *, T *, const int *, int *, T *, const int *, int *);             \
    void p##posv_(const char *, const int *, const int *, T *, const int *, T *, const int *, int *);      \
    void p##getri_(const int *, T *, const int *, const int *, T *, const int *, int *);                   \
    void p##potri_(const char *, const int *, T *, const int *, int *);                                    \
    void p##trtri_(const char *, const char *, const int *, T *, const int *, int *);                      \
    void p##lauum_(const char *, const int *, T *, const int *, int *);                                    \
    void p##gecon_(const char *, const int *, const T *, const int *, const R *, R *, void *, void *,      \
                   int *);                                                                                 \
    static const T p##_one = 1;                                                                            \
    static T *p##_a(void) { return (T *)a; }                                                               \
    static T *p##_b(void) { return (T *)b; }                                                               \
    static void p##_fill(void)                                                                             \
    {                                                                                                      \
        for (int i = 0; i < n * n; i++) p##_a()[i] = i % (n + 1) ? (R)0.25 / (R)n : 4;                     \
        for (int i = 0; i < n * n; i++) p##_b()[i] = (R)(i % 7 - 3);                                       \
        for (int i = 0; i < n; i++) ipiv[i] = i + 1;                                                       \
        info = 0;                                                                                          \
    }                                                                                                      \
    static int p##_close(const void *x, const void *y)                                                     \
    {                                                                                                      \
        int close = 1;                                                                                     \
        for (int i = 0; i < n * n; i++) close &= fabs(((const T *)x)[i] - ((const T *)y)[i]) <= near_enough; \
        return close;                                                                                      \
    }                                                                                                      \
    static void p##_gemm(void)                                                                             \
    {                                                                                                      \
        p##gemm_("N", "T", &n, &n, &n, &p##_one, p##_a(), &n, p##_a(), &n, &p##_one, p##_b(), &n);         \
    }                                                                                                      \
    static void p##_syrk(void) { p##syrk_("L", "N", &n, &n, &p##_one, p##_a(), &n, &p##_one, p##_b(), &n); } \
    static void p##_symm(void)                                                                             \
    {                                                                                                      \
        p##symm_("L", "U", &n, &n, &p##_one, p##_a(), &n, p##_a(), &n, &p##_one, p##_b(), &n);             \
    }                                                                                                      \
    static void p##_trsm(void)                                                                             \
    {                                                                                                      \
        p##trsm_("L", "U", "N", "N", &n, &n, &p##_one, p##_a(), &n, p##_b(), &n);                          \
    }                                                                                                      \
    static void p##_trmm(void)                                                                             \
    {                                                                                                      \
        p##trmm_("R", "L", "T", "N", &n, &n, &p##_one, p##_a(), &n, p##_b(), &n);                          \
    }                                                                                                      \
    static void p##_getrf(void) { p##getrf_(&n, &n, p##_a(), &n, ipiv, &info); }                           \
    static void p##_potrf(void) { p##potrf_("U", &n, p##_a(), &n, &info); }                                \
    static void p##_gesv(void) { p##gesv_(&n, &n, p##_a(), &n, ipiv, p##_b(), &n, &info); }                \
    static void p##_posv(void) { p##posv_("L", &n, &n, p##_a(), &n, p##_b(), &n, &info); }                 \
    static void p##_getri(void) { p##getri_(&n, p##_a(), &n, ipiv, (T *)work, &lwork, &info); }            \
    static void p##_potri(void) { p##potri_("L", &n, p##_a(), &n, &info); }                                \
    static void p##_trtri(void) { p##trtri_("U", "N", &n, p##_a(), &n, &info); }                           \
    static void p##_lauum(void) { p##lauum_("L", &n, p##_a(), &n, &info); }                                \
    static void p##_gecon(void)                                                                            \
    {                                                                                                      \
        const R norm = 5;                                                                                  \
        p##gecon_("1", &n, p##_a(), &n, &norm, (R *)p##_b(), work, vectors, &info);                        \
    }
TYPE(s, float, float, 1e-4f)
TYPE(d, double, double, 1e-10)
TYPE(c, float complex, float, 1e-4f)
TYPE(z, double complex, double, 1e-10)

#define ROW(p, name) { #p #name, p##_##name, p##_fill, p##_close }
#define ROWS(p)                                                                                            \
    ROW(p, gemm), ROW(p, syrk), ROW(p, symm), ROW(p, trsm), ROW(p, trmm), ROW(p, getrf), ROW(p, potrf),    \
        ROW(p, gesv), ROW(p, posv), ROW(p, getri), ROW(p, potri), ROW(p, trtri), ROW(p, lauum), ROW(p, gecon)
static const struct routine {
    const char *name;
    void (*call)(void), (*fill)(void);
    int (*close)(const void *, const void *);
} routines[] = { ROWS(s), ROWS(d), ROWS(c), ROWS(z) };

static const struct routine *r;                  /* the process's */
static int returned, state, keeps_errno = 1;

static void *call_cancelled(void *unused)
{
    r->fill();
    pthread_cancel(pthread_self());
    errno = 77;
    r->call();
    keeps_errno &= errno == 77;
    returned++;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    pthread_testcancel();
    return unused;
}

static int wrong(const char *what, int number)
{
    printf("wrong: %s, call %d: %s\n", r->name, number, what);
    fflush(stdout);
    return 1;
}

static int try(void)
{
    static double complex results[3][2][MOST * MOST];
    alarm(60);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *how;
        state = -1;
        if (pthread_create(&thread, NULL, call_cancelled, NULL)) abort();
        pthread_join(thread, &how);
        if (returned != i + 1) return wrong("it was a cancellation point", i);
        if (!keeps_errno) return wrong("errno is changed", i);
        if (state != PTHREAD_CANCEL_ENABLE) return wrong("cancellation is disabled", i);
        if (how != PTHREAD_CANCELED || info) return wrong("not cancelled behind it, or INFO is wrong", i);
        memcpy(results[i][0], a, sizeof a);
        memcpy(results[i][1], b, sizeof b);
    }
    r->fill();
    r->call();
    for (int i = 0; i < 3; i++)
        if (!r->close(results[i][0], a) || !r->close(results[i][1], b)) return wrong("other results", i);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    n = argc > 1 ? atoi(argv[1]) : 0;
    lwork = 64 * n;
    if (argc < 3 || n < 1 || n > MOST) return 100;
    d_fill();
    for (int i = atoi(argv[2]); i > 0; i--) d_gemm();
    for (r = routines; r < routines + sizeof routines / sizeof *routines; r++) {
        const pid_t child = fork();
        int status = 0;
        if (child == 0) _exit(try());
        if (child < 0 || waitpid(child, &status, 0) != child) abort();
        if (status > 1 << 8 || (status & 0xff)) printf("wrong: %s ended with status %#x\n", r->name, status);
        failed += status != 0;
    }
    printf("%d routines\n", (int)(sizeof routines / sizeof *routines));
    return failed;
}
