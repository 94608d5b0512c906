/* SPDX-License-Identifier: MIT */
/* What SGEMM promises and no public suite checks, through every door. Knows nothing of libgpublas; run it
   plain, then preloaded. Usage: semantics [strict]. Prints a line a check, and more about a wrong one;
   exits with 1 if any was wrong. Without `strict` it leaves out what OpenBLAS 0.3.21 and BLIS 0.9 do
   wrong: both read A and B when alpha = 0, and BLIS drops beta = NaN. */
#include "matrix.h"
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

/* ---- the doors: one signature for all */

static void through_fortran(const product *p)
{
    sgemm_(&p->ta, &p->tb, &p->m, &p->n, &p->k, &p->alpha, p->a, &p->lda, p->b, &p->ldb, &p->beta, p->c,
           &p->ldc);
}

static void through_columns(const product *p)
{
    cblas_sgemm(COLUMN, cblas_trans(p->ta), cblas_trans(p->tb), p->m, p->n, p->k, p->alpha, p->a, p->lda,
                p->b, p->ldb, p->beta, p->c, p->ldc);
}

/* Row-major with the operands exchanged is the same product. */
static void through_rows(const product *p)
{
    cblas_sgemm(ROW, cblas_trans(p->tb), cblas_trans(p->ta), p->n, p->m, p->k, p->alpha, p->b, p->ldb, p->a,
                p->lda, p->beta, p->c, p->ldc);
}

typedef struct door {
    const char *name;
    void (*call)(const product *p);
} door;

static const door doors[] = { { "sgemm_", through_fortran },
                              { "cblas_sgemm, columns", through_columns },
                              { "cblas_sgemm, rows", through_rows } };
enum { DOORS = sizeof doors / sizeof *doors };

/* ---- output */

static int wrong;

static void tell(bool right, const char *what, const char *where)
{
    printf("%s %s%s%s\n", right ? "right" : "WRONG", what, *where ? ": " : "", where);
    wrong += !right;
}

/* Computes the product on a copy of C through the door and checks it. */
static bool computes(const door *via, product p, uint64_t seed)
{
    p.uplo = 'G';
    float *old = random_matrix(p.ldc, p.n, seed);
    p.c = malloc((size_t)most(p.ldc, 1) * (size_t)most(p.n, 1) * sizeof(float));
    memcpy(p.c, old, (size_t)most(p.ldc, 1) * (size_t)most(p.n, 1) * sizeof(float));
    via->call(&p);
    bool right = product_is_right(&p, old);
    if (!right)
        printf("  %c%c m=%d n=%d k=%d alpha=%g beta=%g lda=%d ldb=%d ldc=%d\n", p.ta, p.tb, p.m, p.n, p.k,
               (double)p.alpha, (double)p.beta, p.lda, p.ldb, p.ldc);
    free(old);
    free(p.c);
    return right;
}

/* A product of random operands with this much padding. */
static bool random_product(const door *via, const char *trans, const int mnk[3], const float scale[2],
                           int padding)
{
    product p = { .ta = trans[0], .tb = trans[1], .m = mnk[0], .n = mnk[1], .k = mnk[2], .alpha = scale[0],
                  .beta = scale[1] };
    p.lda = most(1, transposed(p.ta) ? p.k : p.m) + padding;
    p.ldb = most(1, transposed(p.tb) ? p.n : p.k) + padding;
    p.ldc = most(1, p.m) + padding;
    float *a = random_matrix(p.lda, transposed(p.ta) ? p.m : p.k, 1),
          *b = random_matrix(p.ldb, transposed(p.tb) ? p.k : p.n, 2);
    p.a = a;
    p.b = b;
    bool right = computes(via, p, 3);
    free(a);
    free(b);
    return right;
}

/* ---- the checks: each gets a door */

static void all_transpositions(const door *via)
{
    static const char *const pairs[] = { "NN", "NT", "NC", "TN", "TT", "TC", "CN", "CT",
                                         "CC", "nn", "nt", "tn", "tt", "cn", "nc", "cc" };
    bool right = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        right &= random_product(via, pairs[i], (int[]){ 37, 29, 41 }, (float[]){ 0.75f, -1.25f }, 5);
        right &= random_product(via, pairs[i], (int[]){ 300, 257, 270 }, (float[]){ 1, 0 }, 0);
    }
    tell(right, "every pair of N T C n t c, padded and large", via->name);
}

static void large_sizes(const door *via)
{
    bool right = random_product(via, "NN", (int[]){ 513, 1025, 260 }, (float[]){ 1, 1 }, 3);
    right &= random_product(via, "TN", (int[]){ 1, 2049, 700 }, (float[]){ -2, 0.5f }, 0);
    right &= random_product(via, "NT", (int[]){ 2049, 1, 700 }, (float[]){ 1, 0 }, 1);
    right &= random_product(via, "TT", (int[]){ 65, 33, 9001 }, (float[]){ 1, 0.5f }, 7);
    tell(right, "sizes that cross tiles and panels", via->name);
}

static void degenerate_sizes(const door *via)
{
    bool right = true;
    for (int bits = 0; bits < 8; bits++)
        for (int beta = 0; beta < 3; beta++)
            right &= random_product(via, "NT",
                                    (int[]){ bits & 1 ? 0 : 7, bits & 2 ? 0 : 5, bits & 4 ? 0 : 3 },
                                    (float[]){ 1, 0.5f * (float)beta }, 2);
    tell(right, "m, n, k = 0 with beta = 0, 1/2, 1", via->name);
}

static void operands_not_read(const door *via)
{
    bool right = true;
    for (int beta = 0; beta < 3; beta++) {
        product p = { 'N', 'T', 33, 21, 17, 0, NULL, 33, NULL, 21, 0.5f * (float)beta, NULL, 40, 'G' };
        right &= computes(via, p, 4);
        p.alpha = 1;
        p.k = 0;
        right &= computes(via, p, 5);
    }
    tell(right, "alpha = 0 or k = 0 with NULL A and B", via->name);
    float *a = random_matrix(33, 33, 22);
    a[7] = NAN;
    tell(computes(via, (product){ 'N', 'N', 33, 33, 33, 0, a, 33, a, 33, 1.5f, NULL, 33, 'G' }, 23),
         "alpha = 0 drops NaN of A and B", via->name);
    free(a);
}

static void nan_of_operands(const door *via)
{
    float *a = random_matrix(70, 70, 6), *b = random_matrix(70, 70, 7);
    product p = { 'N', 'N', 70, 70, 70, 1, a, 70, b, 70, 0, NULL, 70, 'G' };
    a[3 + 5 * 70] = NAN;
    a[40 + 69 * 70] = INFINITY;
    b[69 + 11 * 70] = 0;            /* 0 times Inf is NaN at (40, 11) */
    b[20 + 60 * 70] = -INFINITY;
    tell(computes(via, p, 8), "NaN, Inf and 0 x Inf of A and B spread", via->name);
    free(a);
    free(b);
}

static void nan_of_c(const door *via)
{
    float *a = random_matrix(50, 50, 10), *b = random_matrix(50, 50, 11), *old = random_matrix(50, 50, 12),
          *c = random_matrix(50, 50, 12);
    product p = { 'N', 'N', 50, 50, 50, 1, a, 50, b, 50, 0, c, 50, 'G' };
    for (int i = 0; i < 2500; i++) c[i] = i % 3 ? NAN : -INFINITY;
    via->call(&p);
    tell(product_is_right(&p, old), "beta = 0 does not read C", via->name);
    for (int i = 0; i < 2500; i++) c[i] = NAN;
    p.alpha = 0;
    via->call(&p);
    tell(product_is_right(&p, old), "alpha = beta = 0 clears NaN", via->name);
    memcpy(c, old, 2500 * sizeof *c);
    c[7] = old[7] = NAN;
    c[8] = old[8] = INFINITY;
    p.alpha = 1;
    p.beta = 0.5f;
    via->call(&p);
    tell(product_is_right(&p, old), "beta = 1/2 keeps NaN and Inf of C", via->name);
    free(a);
    free(b);
    free(c);
    free(old);
}

static void nan_beta(const door *via)
{
    static const int mnk[] = { 20, 20, 20 };
    tell(random_product(via, "NN", mnk, (float[]){ 1, NAN }, 0)
             && random_product(via, "NN", mnk, (float[]){ NAN, 1 }, 0),
         "alpha or beta = NaN spreads", via->name);
}

static void subnormals(const door *via)
{
    enum { N = 40 };
    float a[N * N] = { 0 }, b[N * N], c[N * N];
    for (int i = 0; i < N; i++) a[i + N * i] = 1;
    for (int i = 0; i < N * N; i++) b[i] = (float)(i + 1) * 0x1p-149f;
    product p = { 'N', 'N', N, N, N, 1, a, N, b, N, 0, c, N, 'G' };
    via->call(&p);
    tell(memcmp(b, c, sizeof b) == 0, "subnormal operands are kept exactly", via->name);
    for (int i = 0; i < N; i++) a[i + N * i] = 0x1p-70f;
    for (int i = 0; i < N * N; i++) b[i] = (float)(i % 64 + 1) * 0x1p-76f;
    via->call(&p);
    bool right = true;
    for (int i = 0; i < N * N; i++) right &= c[i] == b[i] * 0x1p-70f && c[i] > 0;
    tell(right, "subnormal results are kept exactly", via->name);
}

/* `count` floats that end where an unmapped page begins; *pages is the address to unmap. */
static float *guarded(size_t count, void **pages, size_t *bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (count * sizeof(float) + page - 1) / page * page;
    char *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + room, page, PROT_NONE)) abort();
    *pages = map;
    *bytes = room + page;
    return (float *)(void *)(map + room) - count;
}

static void unmapped_after_the_end(const door *via)
{
    static const char *const pairs[] = { "NN", "NT", "TN", "TT" };
    bool right = true;
    for (int i = 0; i < 4; i++) {
        product p = { pairs[i][0], pairs[i][1], 301, 77, 55, 1, NULL, 333, NULL, 111, 0.5f, NULL, 350, 'G' };
        int rows[] = { p.ta == 'N' ? p.m : p.k, p.tb == 'N' ? p.k : p.n, p.m },
            columns[] = { p.ta == 'N' ? p.k : p.m, p.tb == 'N' ? p.n : p.k, p.n };
        int lds[] = { p.lda, p.ldb, p.ldc };
        float *x[3], *old = NULL;
        void *pages[3];
        size_t bytes[3];
        for (int o = 0; o < 3; o++) {
            size_t count = (size_t)lds[o] * (size_t)(columns[o] - 1) + (size_t)rows[o];
            float *fill = random_matrix(lds[o], columns[o], (uint64_t)(13 + o));
            x[o] = guarded(count, &pages[o], &bytes[o]);
            memcpy(x[o], fill, count * sizeof(float));
            if (o < 2) {
                /* A and B may be read-only as well. */
                mprotect(pages[o], bytes[o] - (size_t)sysconf(_SC_PAGESIZE), PROT_READ);
                free(fill);
            } else
                old = fill;
        }
        p.a = x[0];
        p.b = x[1];
        p.c = x[2];
        via->call(&p);
        right &= product_is_right(&p, old);
        free(old);
        for (int o = 0; o < 3; o++) munmap(pages[o], bytes[o]);
    }
    tell(right, "nothing mapped after the last element, A and B read-only", via->name);
}

static void aliased(const door *via)
{
    float *a = random_matrix(90, 90, 16);
    bool right = computes(via, (product){ 'N', 'N', 90, 90, 90, 1, a, 90, a, 90, 1, NULL, 90, 'G' }, 17);
    right &= computes(via, (product){ 'T', 'N', 80, 60, 80, 1, a, 90, a + 45, 90, 0, NULL, 80, 'G' }, 18);
    tell(right, "A and B the same or overlapping", via->name);
    float *old = random_matrix(90, 90, 16);   /* as HPL does: C == A == B, k = 0 */
    product p = { 'N', 'N', 90, 90, 0, 1, a, 90, a, 90, 0.5f, a, 90, 'G' };
    via->call(&p);
    tell(product_is_right(&p, old), "C == A == B with k = 0", via->name);
    free(a);
    free(old);
}

/* No call may leave anything behind in the caller's thread. */
static void state_kept(const door *via)
{
    sigset_t before, after, some;
    float *a = random_matrix(64, 64, 19);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &some, &before);
    feclearexcept(FE_ALL_EXCEPT);
    errno = 4711;
    unsigned control = _mm_getcsr() & ~0x3fu;   /* all but the sticky flags */
    bool right = computes(via, (product){ 'N', 'N', 64, 64, 64, 1, a, 64, a, 64, 0, NULL, 64, 'G' }, 20);
    right &= (_mm_getcsr() & ~0x3fu) == control && fegetround() == FE_TONEAREST;
    pthread_sigmask(SIG_SETMASK, &before, &after);
    right &= sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGUSR2) == 0;
    float *c = malloc(64 * 64 * sizeof *c);
    product p = { 'N', 'N', 64, 64, 64, 1, a, 64, a, 64, 0, c, 64, 'G' };
    errno = 4711;
    via->call(&p);
    right &= errno == 4711;
    tell(right, "MXCSR, errno and signal mask are as they were", via->name);
    free(a);
    free(c);
}

/* ---- threads: eight write disjoint row blocks of one C, each from operands of its own */

enum { THREADS = 8, BLOCK = 33, COLUMNS = 150, DEPTH = 70, ROUNDS = 20, TALL = THREADS * BLOCK };
typedef struct worker {
    pthread_t thread;
    const door *via;
    float *c;
    int index;
    bool right;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    w->right = true;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t seed = (uint64_t)(1000 + 10 * w->index + 100 * round);
        float *a = random_matrix(BLOCK, DEPTH, seed), *b = random_matrix(DEPTH, COLUMNS, seed + 1);
        float *own = malloc((size_t)BLOCK * COLUMNS * sizeof *own), *old = random_matrix(BLOCK, COLUMNS, 5),
              *c = w->c + (size_t)w->index * BLOCK;
        for (int j = 0; j < COLUMNS; j++)
            memcpy(c + (size_t)j * TALL, old + (size_t)j * BLOCK, BLOCK * sizeof *c);
        product p = { 'N', 'N', BLOCK, COLUMNS, DEPTH, 1, a, BLOCK, b, DEPTH, 0.5f, c, TALL, 'G' };
        w->via->call(&p);
        for (int j = 0; j < COLUMNS; j++)
            memcpy(own + (size_t)j * BLOCK, c + (size_t)j * TALL, BLOCK * sizeof *c);
        p.c = own;
        p.ldc = BLOCK;
        w->right = w->right && product_is_right(&p, old);
        free(a);
        free(b);
        free(own);
        free(old);
    }
    return NULL;
}

static void threads(const door *via)
{
    worker workers[THREADS];
    float *c = random_matrix(TALL, COLUMNS, 21);
    bool right = true;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ .via = via, .c = c, .index = i };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        right &= workers[i].right;
    }
    tell(right, "eight threads on row blocks of one C", via->name);
    free(c);
}

/* ---- illegal arguments: the handlers are the program's own */

static int reported;
static char reporter[8];

void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)length;
    reported = *info;
    memcpy(reporter, name, 5);
}

void cblas_xerbla(int info, const char *routine, const char *form, ...);
void cblas_xerbla(int info, const char *routine, const char *form, ...)
{
    (void)routine, (void)form;
    reported = info;
}

static const struct illegal {
    int number;      /* sgemm_'s */
    product p;
} illegals[] = {
    { 1, { 'X', 'N', 5, 5, 5, 1, NULL, 5, NULL, 5, 0, NULL, 5, 'G' } },
    { 2, { 'N', '?', 5, 5, 5, 1, NULL, 5, NULL, 5, 0, NULL, 5, 'G' } },
    { 3, { 'N', 'N', -1, 5, 5, 1, NULL, 5, NULL, 5, 0, NULL, 5, 'G' } },
    { 4, { 'N', 'N', 5, -1, 5, 1, NULL, 5, NULL, 5, 0, NULL, 5, 'G' } },
    { 5, { 'N', 'N', 5, 5, -1, 1, NULL, 5, NULL, 5, 0, NULL, 5, 'G' } },
    { 8, { 'N', 'N', 5, 5, 3, 1, NULL, 4, NULL, 5, 0, NULL, 5, 'G' } },
    { 8, { 'T', 'N', 5, 5, 7, 1, NULL, 6, NULL, 7, 0, NULL, 5, 'G' } },
    { 10, { 'N', 'N', 5, 3, 5, 1, NULL, 5, NULL, 4, 0, NULL, 5, 'G' } },
    { 10, { 'n', 't', 5, 7, 5, 1, NULL, 5, NULL, 6, 0, NULL, 5, 'G' } },
    { 13, { 'N', 'N', 5, 5, 5, 1, NULL, 5, NULL, 5, 0, NULL, 4, 'G' } },
    { 3, { 'N', 'N', -1, -1, -1, 1, NULL, 0, NULL, 0, 0, NULL, 0, 'G' } },
    { 13, { 'N', 'N', 5, 0, 5, 0, NULL, 5, NULL, 5, 1, NULL, 4, 'G' } },
};

static void illegal_arguments(void)
{
    float a[64] = { 1 }, b[64] = { 2 }, c[64], old[64];
    bool right = true;
    for (int i = 0; i < 64; i++) c[i] = old[i] = (float)i;
    for (size_t i = 0; i < sizeof illegals / sizeof *illegals; i++) {
        product p = illegals[i].p;
        p.a = a;
        p.b = b;
        p.c = c;
        reported = -1;
        through_fortran(&p);
        bool this = reported == illegals[i].number && strncmp(reporter, "SGEMM", 5) == 0
                    && memcmp(c, old, sizeof c) == 0;
        if (!this)
            printf("  case %zu: number %d of '%s', wanted %d\n", i, reported, reporter, illegals[i].number);
        right &= this;
    }
    tell(right, "illegal arguments reach xerbla_ with their number, C untouched", "sgemm_");

    /* CBLAS's numbers differ from host to host. They are printed, because the output must be the same with
       and without libgpublas. */
    right = true;
    printf("numbers through cblas_sgemm:");
    for (int layout = ROW; layout <= COLUMN; layout++)
        for (size_t i = 2; i < sizeof illegals / sizeof *illegals; i++) {
            product p = illegals[i].p;
            reported = -1;
            cblas_sgemm(layout, cblas_trans(p.ta), cblas_trans(p.tb), p.m, p.n, p.k, p.alpha, a, p.lda, b,
                        p.ldb, p.beta, c, p.ldc);
            printf(" %d", reported);
            /* Some are legal by rows. */
            right &= reported > 0 ? memcmp(c, old, sizeof c) == 0 : layout == ROW;
            memcpy(c, old, sizeof c);
        }
    reported = -1;
    cblas_sgemm(99, NO_TRANS, NO_TRANS, 5, 5, 5, 1, a, 5, b, 5, 0, c, 5);
    printf(" layout %d", reported);
    reported = -1;
    cblas_sgemm(ROW, 99, NO_TRANS, 5, 5, 5, 1, a, 5, b, 5, 0, c, 5);
    printf(" transa %d\n", reported);
    tell(right && memcmp(c, old, sizeof c) == 0, "illegal arguments are reported, C untouched",
         "cblas_sgemm");
}

int main(int count, char **words)
{
    bool strict = count > 1 && strcmp(words[1], "strict") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < DOORS; i++) {
        all_transpositions(&doors[i]);
        large_sizes(&doors[i]);
        degenerate_sizes(&doors[i]);
        if (strict) operands_not_read(&doors[i]);
        nan_of_operands(&doors[i]);
        nan_of_c(&doors[i]);
        if (strict) nan_beta(&doors[i]);
        subnormals(&doors[i]);
        unmapped_after_the_end(&doors[i]);
        aliased(&doors[i]);
        state_kept(&doors[i]);
        threads(&doors[i]);
    }
    illegal_arguments();
    return wrong > 0;
}
