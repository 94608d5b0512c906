/* SPDX-License-Identifier: MIT */
/* No byte outside the operands is read or written, wherever they lie in memory, and sizes whose products
   exceed 32 bits are right. Knows nothing of libgpublas. Small integers give the same bits on every route.
   Usage: bounds guard | huge | illegal. Prints a line a check and exits with 1 if one was wrong. A touch
   of a forbidden page ends the program by SIGSEGV. */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "matrix.h"

typedef struct matrix {
    int rows, cols, ld;
    char *map;
    size_t bytes;                /* of the map, with the forbidden pages at both ends */
    float *at;
} matrix;

enum { PAGE = 4096 };
static int wrong;

static void tell(bool right, const char *what)
{
    printf("%s %s\n", right ? "right" : "WRONG", what);
    wrong += !right;
}

static size_t span(const matrix *x) { return (size_t)(x->cols - 1) * (size_t)x->ld + (size_t)x->rows; }

/* Places a matrix between two forbidden pages: up against the second one (at_end), or up against the
   first. Between the matrix and the other page there is a canary of 0x5a. */
static matrix place(int rows, int cols, int ld, bool at_end)
{
    matrix x = { .rows = rows, .cols = cols, .ld = ld };
    const size_t held = (span(&x) * sizeof(float) + PAGE - 1) / PAGE * PAGE;
    x.bytes = held + 2 * PAGE;
    x.map = mmap(NULL, x.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x.map == MAP_FAILED || mprotect(x.map + PAGE, held, PROT_READ | PROT_WRITE)) abort();
    x.at = (float *)(void *)(x.map + PAGE + (at_end ? held - span(&x) * sizeof(float) : 0));
    return x;
}

static void fill(matrix *x, int seed)
{
    for (int j = 0; j < x->cols; j++)
        for (int i = 0; i < x->rows; i++)
            x->at[i + (size_t)j * (size_t)x->ld] = (float)((i * 7 + j * 5 + seed) % 7 - 3);
}

static float element(const matrix *x, bool transposed, int i, int j)
{
    return transposed ? x->at[j + (size_t)i * (size_t)x->ld] : x->at[i + (size_t)j * (size_t)x->ld];
}

/* C = A B + beta C through sgemm_. C must be right, and not a byte of its map may change elsewhere.
   `before` holds what was in c->at. */
static bool multiply(const char *trans, const matrix *a, const matrix *b, matrix *c, int k, float beta)
{
    const float one = 1;
    const bool ta = trans[0] != 'N', tb = trans[1] != 'N';
    float *old = malloc((size_t)c->rows * (size_t)c->cols * sizeof *old);
    if (!old) abort();
    for (int j = 0; j < c->cols; j++)
        memcpy(old + (size_t)j * (size_t)c->rows, c->at + (size_t)j * (size_t)c->ld,
               (size_t)c->rows * sizeof *old);
    sgemm_(&trans[0], &trans[1], &c->rows, &c->cols, &k, &one, a->at, &a->ld, b->at, &b->ld, &beta, c->at,
           &c->ld);
    bool right = true;
    for (int j = 0; j < c->cols; j++)
        for (int i = 0; i < c->rows; i++) {
            double sum = beta == 0 ? 0 : beta * old[i + (size_t)j * (size_t)c->rows];
            for (int p = 0; p < k; p++) sum += (double)element(a, ta, i, p) * (double)element(b, tb, p, j);
            right &= c->at[i + (size_t)j * (size_t)c->ld] == (float)sum;
        }
    free(old);
    return right;
}

/* Canaries: fills the map of C with what must be outside C. */
static bool canaries_live(const matrix *c)
{
    const uint32_t *first = (const uint32_t *)(const void *)(c->map + PAGE),
        *last = (const uint32_t *)(const void *)(c->map + c->bytes - PAGE);
    const ptrdiff_t ahead = (const uint32_t *)(const void *)c->at - first;
    for (ptrdiff_t at = 0; at < last - first; at++) {
        const bool within = at >= ahead && (size_t)(at - ahead) < span(c) && (at - ahead) % c->ld < c->rows;
        if (!within && first[at] != 0x5a5a5a5a) return false;
    }
    return true;
}

static bool one_guarded(const char *trans, const int size[3], int pad, int where)
{
    const int m = size[0], n = size[1], k = size[2];
    const bool ta = trans[0] != 'N', tb = trans[1] != 'N';
    const int ra = ta ? k : m, rb = tb ? n : k;
    matrix a = place(ra, ta ? m : k, ra + pad, where & 1), b = place(rb, tb ? k : n, rb + pad, where & 2),
           c = place(m, n, m + pad, where & 4);
    fill(&a, 1);
    fill(&b, 2);
    mprotect(a.map + PAGE, a.bytes - 2 * PAGE, PROT_READ);
    mprotect(b.map + PAGE, b.bytes - 2 * PAGE, PROT_READ);
    bool right = true;
    for (int twice = 0; twice < 2; twice++) {
        memset(c.map + PAGE, 0x5a, c.bytes - 2 * PAGE);
        fill(&c, 3);
        right &= multiply(trans, &a, &b, &c, k, (float)twice) && canaries_live(&c);
    }
    munmap(a.map, a.bytes);
    munmap(b.map, b.bytes);
    munmap(c.map, c.bytes);
    if (!right) printf("  %s m=%d n=%d k=%d pad=%d where=%d\n", trans, m, n, k, pad, where);
    return right;
}

static void guard(void)
{
    static const char *const pairs[] = { "NN", "NT", "TN", "TT", "CN", "NC" };
    static const int sizes[][3] = { { 1, 1, 1 },     { 5, 7, 3 },     { 64, 64, 64 },
                                    { 129, 65, 77 }, { 1, 300, 40 },  { 300, 1, 40 },
                                    { 3, 2, 700 },   { 257, 130, 1 }, { 260, 258, 300 } };
    static const int pads[] = { 0, 1, 3, 64, 1021 };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        bool right = true;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t d = 0; d < sizeof pads / sizeof *pads; d++) {
                /* Each ends where a forbidden page begins. */
                right &= one_guarded(pairs[p], sizes[s], pads[d], 7);
                right &= one_guarded(pairs[p], sizes[s], pads[d], (int)(s + d) % 7);
            }
        tell(right, pairs[p]);
    }
}

/* Leading dimensions so large that the operands span 2^31 or 2^32 elements and more. Only a few of their
   pages exist. */
static void huge(void)
{
    static const char *const pairs[] = { "NN", "NT", "TN", "TT" };
    static const struct { const char *name; int lda, ldb, ldc;
    } spans[] = { { "A beyond 2^31 elements", 1 << 28, 40, 40 },
                  { "A beyond 2^32 elements", 1 << 29, 40, 40 },
                  { "B beyond 2^31 elements", 40, (1 << 28) + 1, 40 },
                  { "B beyond 2^32 elements", 40, (1 << 29) + 3, 40 },
                  { "C beyond 2^31 elements", 40, 40, (1 << 28) + 7 },
                  { "C beyond 2^32 elements", 40, 40, 1 << 29 },
                  { "all with ld 2^31 - 1", 2147483647, 2147483647, 2147483647 } };
    for (size_t s = 0; s < sizeof spans / sizeof *spans; s++) {
        bool right = true;
        for (int p = 0; p < 4; p++) {
            const int m = 12, n = 11, k = 10;
            const bool ta = pairs[p][0] != 'N', tb = pairs[p][1] != 'N';
            matrix a = place(ta ? k : m, ta ? m : k, spans[s].lda, true),
                   b = place(tb ? n : k, tb ? k : n, spans[s].ldb, true);
            matrix c = place(m, n, spans[s].ldc, true);
            fill(&a, 1);
            fill(&b, 2);
            fill(&c, 3);
            right &= multiply(pairs[p], &a, &b, &c, k, 1);
            munmap(a.map, a.bytes);
            munmap(b.map, b.bytes);
            munmap(c.map, c.bytes);
        }
        tell(right, spans[s].name);
    }
}

static int reported;
void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    reported = *info;
}

/* Dimensions at the end of the range: an illegal one is reported and nothing is touched; a legal one with
   nothing to do does nothing. */
static void illegal(void)
{
    enum { M = 2147483647 };
    static const struct {
        const char *name;
        int m, n, k, lda, ldb, ldc;
        float alpha, beta;
        int info;
    } cases[] = { { "m = 2^31 - 1, lda too small", M, 2, 2, 2, 2, M, 1, 1, 8 },
                  { "k = 2^31 - 1, ldb too small", 2, 2, M, 2, 2, 2, 1, 1, 10 },
                  { "m = 2^31 - 1, ldc too small", M, 2, 2, M, 2, 2, 1, 1, 13 },
                  { "all 2^31 - 1, all ld 1", M, M, M, 1, 1, 1, 1, 0, 8 },
                  { "m = -2^31", -M - 1, 2, 2, 2, 2, 2, 1, 1, 3 },
                  { "n = -2^31", 2, -M - 1, 2, 2, 2, 2, 1, 1, 4 },
                  { "k = -2^31", 2, 2, -M - 1, 2, 2, 2, 1, 1, 5 },
                  { "lda = -2^31", 2, 2, 2, -M - 1, 2, 2, 1, 1, 8 },
                  { "n = 0, the rest 2^31 - 1", M, 0, M, M, M, M, 1, 1, 0 },
                  { "m = 0, the rest 2^31 - 1", 0, M, M, M, M, M, 1, 0, 0 },
                  { "k = 0, beta = 1, m = n = 2^31 - 1", M, M, 0, M, M, M, 1, 1, 0 },
                  { "alpha = 0, beta = 1, all 2^31 - 1", M, M, M, M, M, M, 0, 1, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float c[4] = { 1, 2, 3, 4 };
        reported = 0;
        sgemm_("N", "N", &cases[i].m, &cases[i].n, &cases[i].k, &cases[i].alpha, c, &cases[i].lda, c,
               &cases[i].ldb, &cases[i].beta, c, &cases[i].ldc);
        tell(reported == cases[i].info && c[0] == 1 && c[1] == 2 && c[2] == 3 && c[3] == 4, cases[i].name);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(200);
    if (strcmp(what, "guard") == 0) guard();
    else if (strcmp(what, "huge") == 0) huge();
    else if (strcmp(what, "illegal") == 0) illegal();
    else return 2;
    return wrong > 0;
}
