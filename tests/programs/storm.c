/* SPDX-License-Identifier: MIT */
/* Many threads, forks and cancelled threads at once. Knows nothing of libgpublas. Products are of small
   integers, so every route gives the same bits. Systems have integer solutions, and factors and pivots that
   are known. Usage: storm threads|cancel|fork COUNT. Exits with 1 if a product or a solution was wrong or a
   child did not end well, 2 on a usage error. An alarm ends what hangs. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "matrix.h"

/* Sides and depth of the shared operands; products use parts of them. */
enum { SIDE = 320, DEPTH = 200, THREADS = 64, BLOCKS = 8 };
static float a[SIDE * DEPTH], b[DEPTH * SIDE];
static int exact[SIDE * SIDE];                   /* A B over the whole depth, and over the first half */
static int half[SIDE * SIDE];
static atomic_int wrong, done;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void fill(void)
{
    for (int i = 0; i < SIDE * DEPTH; i++) a[i] = (float)(i * 7 % 11 % 7 - 3);
    for (int i = 0; i < DEPTH * SIDE; i++) b[i] = (float)(i * 5 % 13 % 5 - 2);
    for (int j = 0; j < SIDE; j++)
        for (int p = 0; p < DEPTH; p++)
            for (int i = 0; i < SIDE; i++) {
                const int x = (int)a[i + p * SIDE] * (int)b[p + j * DEPTH];
                exact[i + j * SIDE] += x;
                if (p < DEPTH / 2) half[i + j * SIDE] += x;
            }
}

/* C(i.., j..) = A(i.., ) B( , j..) over half of the depth or all of it, with beta 0 or 1, into memory of
   leading dimension ld that nobody else's part touches. True if it is right. */
static bool multiply(float *c, int ld, const int at[2], const int size[2], bool deep, bool add)
{
    const int lda = SIDE, ldb = DEPTH, depth = deep ? DEPTH : DEPTH / 2;
    const float one = 1, beta = add ? 1 : 0;
    const int *wanted = deep ? exact : half;
    for (int j = 0; j < size[1]; j++)
        for (int i = 0; i < size[0]; i++) c[i + (size_t)j * (size_t)ld] = add ? (float)(i % 5) : -1e30f;
    sgemm_("N", "N", &size[0], &size[1], &depth, &one, a + at[0], &lda, b + at[1] * DEPTH, &ldb, &beta, c,
           &ld);
    for (int j = 0; j < size[1]; j++)
        for (int i = 0; i < size[0]; i++)
            if (c[i + (size_t)j * (size_t)ld]
                != (float)(wanted[at[0] + i + (at[1] + j) * SIDE] + (add ? i % 5 : 0)))
                return false;
    return true;
}

/* A product of random place and size (from 1 x 1 to the whole), in memory of this thread. */
static void random_product(uint64_t *random, float *c)
{
    const int most = next_random(random) % 4 ? 60 : SIDE;
    const int size[2] = { 1 + (int)(next_random(random) % (unsigned)most),
                          1 + (int)(next_random(random) % (unsigned)most) };
    const int at[2] = { (int)(next_random(random) % (unsigned)(SIDE - size[0] + 1)),
        (int)(next_random(random) % (unsigned)(SIDE - size[1] + 1)) };
    if (!multiply(c, SIDE, at, size, next_random(random) & 1, next_random(random) & 1))
        atomic_fetch_add(&wrong, 1);
}

/* ---- systems: A = P L U or G G^T, whose factors are of few bits and near the diagonal */

enum { ORDER = 70, MOST_RHS = 3, BAND = 3 };
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv, int *info);
void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a, const int *lda,
             const int *ipiv, double *b, const int *ldb, int *info);
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b, const int *ldb,
            int *info);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);
void dpotrs_(const char *uplo, const int *n, const int *nrhs, const double *a, const int *lda, double *b,
             const int *ldb, int *info);

typedef struct linear_system {
    char uplo;                            /* 'G': LU; else Cholesky's, in that triangle */
    int n, nrhs, info, ipiv[ORDER];
    double a[ORDER * ORDER], b[ORDER * MOST_RHS];
} linear_system;

/* L of LU: multipliers of at most a quarter, so that pivoting finds the row that was exchanged. */
static double lower(int i, int j)
{
    if (i == j) return 1;
    return i > j && i <= j + BAND ? 0.25 * ((i * 5 + j * 3) % 3 - 1) : 0;
}
static double upper(int i, int j)
{
    if (i == j) return 8 - i % 2;
    return i < j && j <= i + BAND ? (i * 3 + j * 7) % 5 % 3 - 1 : 0;
}
static double of_cholesky(int i, int j)
{
    if (i == j) return 4 + i % 3;
    return i > j && i <= j + BAND ? (i * 7 + j * 2) % 3 - 1 : 0;
}
static int pivot(int n, int j) { return j + (j * 7 + n) % (n - j); }
static double solution(int i, int j) { return (i * 3 + j * 5) % 9 - 4; }

static bool is_stored(const linear_system *s, int i, int j)
{
    return s->uplo == 'G' || (s->uplo == 'L' ? i >= j : i <= j);
}

static void make_system(linear_system *s)
{
    const bool lu = s->uplo == 'G';
    for (int j = 0; j < s->n; j++)
        for (int i = 0; i < s->n; i++) {
            double sum = 0;
            for (int p = most(0, most(i, j) - BAND); p <= i && p <= j; p++)
                sum += lu ? lower(i, p) * upper(p, j) : of_cholesky(i, p) * of_cholesky(j, p);
            s->a[i + j * ORDER] = sum;
        }
    for (int j = s->n - 1; lu && j >= 0; j--)
        for (int i = 0; i < s->n; i++) {
            double *x = &s->a[j + i * ORDER], *y = &s->a[pivot(s->n, j) + i * ORDER], old = *x;
            *x = *y;
            *y = old;
        }
    for (int j = 0; j < s->nrhs; j++)
        for (int i = 0; i < s->n; i++) {
            s->b[i + j * ORDER] = 0;
            for (int p = 0; p < s->n; p++) s->b[i + j * ORDER] += s->a[i + p * ORDER] * solution(p, j);
        }
    for (int j = 0; j < s->n; j++)
        for (int i = 0; i < s->n; i++)
            if (!is_stored(s, i, j)) s->a[i + j * ORDER] = NAN;
}

static bool is_near(double x, double wanted) { return fabs(x - wanted) <= 1e-12; }

static bool is_solved(const linear_system *s)
{
    bool right = s->info == 0;
    for (int j = 0; j < s->n; j++)
        for (int i = 0; i < s->n; i++) {
            const double x = s->a[i + j * ORDER],
                         of_lu = i > j ? lower(i, j) : upper(i, j),
                         of_square = s->uplo == 'L' ? of_cholesky(i, j) : of_cholesky(j, i);
            right &= is_stored(s, i, j) ? is_near(x, s->uplo == 'G' ? of_lu : of_square) : isnan(x);
        }
    for (int j = 0; s->uplo == 'G' && j < s->n; j++) right &= s->ipiv[j] == pivot(s->n, j) + 1;
    for (int j = 0; j < s->nrhs; j++)
        for (int i = 0; i < s->n; i++) right &= is_near(s->b[i + j * ORDER], solution(i, j));
    return right;
}

/* By gesv, by getrf and getrs, or by potrf and potrs. */
static void random_solve(uint64_t *random)
{
    const int ld = ORDER;
    linear_system s = { .uplo = "GGLU"[next_random(random) % 4], .n = 1 + (int)(next_random(random) % ORDER),
                        .nrhs = 1 + (int)(next_random(random) % MOST_RHS), .info = -1 };
    make_system(&s);
    if (s.uplo != 'G') {
        dpotrf_(&s.uplo, &s.n, s.a, &ld, &s.info);
        if (s.info == 0) dpotrs_(&s.uplo, &s.n, &s.nrhs, s.a, &ld, s.b, &ld, &s.info);
    } else if (next_random(random) & 1) {
        dgesv_(&s.n, &s.nrhs, s.a, &ld, s.ipiv, s.b, &ld, &s.info);
    } else {
        dgetrf_(&s.n, &s.n, s.a, &ld, s.ipiv, &s.info);
        if (s.info == 0) dgetrs_("N", &s.n, &s.nrhs, s.a, &ld, s.ipiv, s.b, &ld, &s.info);
    }
    if (!is_solved(&s)) atomic_fetch_add(&wrong, 1);
}

static void random_call(uint64_t *random, float *c)
{
    if (next_random(random) % 4) random_product(random, c);
    else random_solve(random);
}

/* ---- threads: blocks of rows of one C, and products and systems of their own in turn */

static float shared_c[SIDE * SIDE];
static pthread_barrier_t together;
static int rounds;

static void *compute(void *argument)
{
    const int number = (int)(intptr_t)argument, rows = SIDE / (THREADS / BLOCKS), cols = SIDE / BLOCKS;
    const int at[2] = { number % (THREADS / BLOCKS) * rows, number / (THREADS / BLOCKS) * cols },
              size[2] = { rows, cols };
    uint64_t random = 88172645463325252ull + (uint64_t)number;
    float *own = malloc(sizeof shared_c);
    if (!own) abort();
    pthread_barrier_wait(&together);
    for (int round = 0; round < rounds; round++) {
        if (!multiply(shared_c + at[0] + at[1] * SIDE, SIDE, at, size, true, round & 1))
            atomic_fetch_add(&wrong, 1);
        random_call(&random, own);
    }
    free(own);
    return NULL;
}

static void threads(int count)
{
    pthread_t thread[THREADS];
    rounds = count;
    pthread_barrier_init(&together, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, compute, (void *)i)) abort();
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int rows = SIDE / (THREADS / BLOCKS), old = rounds % 2 ? 0 : i % SIDE % rows % 5;
        if (shared_c[i] != (float)(exact[i] + old)) atomic_fetch_add(&wrong, 1);
    }
}

/* ---- cancel: a thread computes until it is cancelled, wherever it is at that moment */

static sem_t began;

static void *until_cancelled(void *argument)
{
    static _Atomic uint64_t seeds = 1;
    uint64_t random = 0x9e3779b97f4a7c15u * atomic_fetch_add(&seeds, 1);
    float *c = argument;
    sem_post(&began);
    for (;;) {
        random_call(&random, c);
        pthread_testcancel();
    }
    return NULL;
}

/* Six at a time: more than there are lanes, so that some wait for one. */
static void cancel(int count)
{
    enum { AT_ONCE = 6 };
    uint64_t random = 4711;
    float *memory[AT_ONCE];
    sem_init(&began, 0, 0);
    for (int i = 0; i < AT_ONCE; i++)
        if (!(memory[i] = malloc(sizeof shared_c))) abort();
    for (int round = 0; round < count; round++) {
        pthread_t thread[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&thread[i], NULL, until_cancelled, memory[i])) abort();
        for (int i = 0; i < AT_ONCE; i++) sem_wait(&began);
        usleep((useconds_t)(next_random(&random) % 3000));
        for (int i = 0; i < AT_ONCE; i++) pthread_cancel(thread[i]);
        for (int i = 0; i < AT_ONCE; i++) {
            void *how;
            pthread_join(thread[i], &how);
            if (how != PTHREAD_CANCELED) atomic_fetch_add(&wrong, 1);
        }
        random_call(&random, memory[0]);
        if (round % 16 == 0) {                       /* and a dead thread may not hold what fork waits for */
            const pid_t child = fork();
            int status = 0;
            if (child == 0) {
                random_call(&random, memory[0]);
                _exit(atomic_load(&wrong) != 0);
            }
            if (child < 0 || waitpid(child, &status, 0) != child || status) atomic_fetch_add(&wrong, 1);
        }
    }
    for (int i = 0; i < AT_ONCE; i++) free(memory[i]);
}

/* ---- fork: before the first call, and then from eight threads beside the calls of eight others; every
   child computes */

static atomic_int forks_left;

static bool fork_one(uint64_t *random)
{
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        alarm(60);
        float *c = malloc(sizeof shared_c);
        if (!c) _exit(3);
        atomic_store(&wrong, 0);
        random_call(random, c);
        if (next_random(random) % 16 == 0) {         /* and a grandchild */
            const pid_t grandchild = fork();
            if (grandchild == 0) {
                random_call(random, c);
                _exit(atomic_load(&wrong) != 0);
            }
            if (grandchild < 0 || waitpid(grandchild, &status, 0) != grandchild || status) _exit(4);
        }
        _exit(atomic_load(&wrong) != 0);
    }
    if (child < 0) return errno == EAGAIN;
    if (waitpid(child, &status, 0) != child || status) {
        fprintf(stderr, "a child ended with status %#x\n", (unsigned)status);
        return false;
    }
    return true;
}

static void *fork_on(void *argument)
{
    uint64_t random = 362436069u + (uint64_t)(intptr_t)argument;
    while (atomic_fetch_sub(&forks_left, 1) > 0)
        if (!fork_one(&random)) atomic_fetch_add(&wrong, 1);
    return NULL;
}

static void *compute_on(void *argument)
{
    uint64_t random = 521288629u + (uint64_t)(intptr_t)argument;
    float *c = malloc(sizeof shared_c);
    if (!c) abort();
    while (!atomic_load(&done)) random_call(&random, c);
    free(c);
    return NULL;
}

static void forks(int count)
{
    enum { FORKING = 8, COMPUTING = 4 };
    pthread_t thread[FORKING], beside[COMPUTING];
    uint64_t random = 1;
    float *c = malloc(sizeof shared_c);
    if (!c) abort();
    for (int i = 0; i < count / 20; i++)             /* before anything was computed */
        if (!fork_one(&random)) atomic_fetch_add(&wrong, 1);
    atomic_store(&forks_left, count - 2 * (count / 20));
    for (intptr_t i = 0; i < COMPUTING; i++)
        if (pthread_create(&beside[i], NULL, compute_on, (void *)i)) abort();
    for (intptr_t i = 0; i < FORKING; i++)
        if (pthread_create(&thread[i], NULL, fork_on, (void *)i)) abort();
    for (int i = 0; i < FORKING; i++) pthread_join(thread[i], NULL);
    atomic_store(&done, 1);
    for (int i = 0; i < COMPUTING; i++) pthread_join(beside[i], NULL);
    for (int i = 0; i < count / 20; i++)             /* after it */
        if (!fork_one(&random)) atomic_fetch_add(&wrong, 1);
    random_call(&random, c);
    free(c);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    alarm(300);
    fill();
    if (strcmp(what, "threads") == 0) threads(count);
    else if (strcmp(what, "cancel") == 0) cancel(count);
    else if (strcmp(what, "fork") == 0) forks(count);
    else return 2;
    printf("wrong %d\n", atomic_load(&wrong));
    return atomic_load(&wrong) != 0;
}
